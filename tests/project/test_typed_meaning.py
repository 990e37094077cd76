"""Names, printed text and the wording of errors are for people: no product file decides by them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(path for folder in ("symbolic", "numeric", "models", "cli") for path in (ROOT / folder).rglob("*.py"))
ENDINGS = ("_bar", "_dot", "_inv", "_grad", "_hat", "_tilde")
TESTS = {"startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "split", "find", "index"}
PATTERNS = {"match", "search", "fullmatch", "findall", "sub", "split"}
# where the suggested names are spelled, and where the names that a user's own function may return are recognised
SPELLED = {"symbolic/equations/roles.py", "numeric/check_file.py"}


def strings(node: ast.AST) -> Iterator[str]:
    return (part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str))


def read_as_text(node: ast.AST) -> bool:
    """Whether a piece of text is looked into: x.endswith(…), re.match(…, x), "…" in x."""
    if isinstance(node, ast.Compare):
        return any(isinstance(op, (ast.In, ast.NotIn, ast.Eq, ast.NotEq)) for op in node.ops)
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return called and node.func.attr in TESTS | PATTERNS


def by_endings(tree: ast.AST) -> Iterator[int]:
    """Where text is compared with the ending of a role, or a name is made with one."""
    for node in ast.walk(tree):
        tested = read_as_text(node) and any(text in ENDINGS for text in strings(node))
        made = isinstance(node, ast.JoinedStr) and any(text.startswith(ENDINGS) for text in strings(node))
        added = isinstance(node, ast.BinOp) and any(
            isinstance(side, ast.Constant) and side.value in ENDINGS for side in (node.left, node.right)
        )
        if tested or made or added:
            yield node.lineno


def says(node: ast.AST, error: str) -> bool:
    """Whether an expression is the wording of an error: str(error), error.args[0], error.message."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("str", "repr"):
        return any(isinstance(part, ast.Name) and part.id == error for part in node.args)
    wording = isinstance(node, ast.Attribute) and node.attr in ("args", "message")
    return wording and isinstance(node.value, ast.Name) and node.value.id == error


def by_wording(tree: ast.AST) -> Iterator[int]:
    """Where the wording of a caught error is looked into."""
    handlers = (node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.name)
    for handler in handlers:
        for node in ast.walk(handler):
            if read_as_text(node) and any(says(part, handler.name) for part in ast.walk(node)):
                yield node.lineno


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_decision_reads_a_name_or_a_message(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    allowed = str(path.relative_to(ROOT)) in SPELLED
    assert allowed or not list(by_endings(tree)), "the ending of a name is read or made: use the array's role"
    assert not list(by_wording(tree)), "the wording of an error is read: give the error a field"


# what the scan must find, and what it must leave alone
FOUND = [
    'x.endswith("_bar")',
    'x.removesuffix("_inv")',
    'x.endswith(("_bar", "_dot"))',
    '"_grad" in x',
    'f"{x}_bar"',
    'x + "_dot"',
    're.search("_hat", x)',
    'try:\n    pass\nexcept E as error:\n    if "differ at" in str(error):\n        pass',
    'try:\n    pass\nexcept E as error:\n    a = str(error).split(": ")',
    'try:\n    pass\nexcept E as error:\n    if error.args[0].startswith("x"):\n        pass',
]
LEFT = ['x["x_bar"]', 'x.endswith(".py")', "try:\n    pass\nexcept E as error:\n    raise F(str(error))"]


@pytest.mark.parametrize("source", FOUND)
def test_the_scan_finds(source: str) -> None:
    tree = ast.parse(source)
    assert [*by_endings(tree), *by_wording(tree)]


@pytest.mark.parametrize("source", LEFT)
def test_the_scan_leaves(source: str) -> None:
    tree = ast.parse(source)
    assert not [*by_endings(tree), *by_wording(tree)]
