"""What holds for the files of the repository themselves."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("symbolic", "numeric", "models", "cli")
MODULES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
REGISTRIES = re.compile(r"\b(?:pypi|pythonhosted|npmjs|debian|download\.pytorch)\.(?:org|com)\b", re.IGNORECASE)


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_file_is_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) < 500


@pytest.mark.parametrize("path", [path for path in MODULES if relative(path).startswith("symbolic/")], ids=relative)
def test_symbolic_is_pure(path: Path) -> None:
    """No import of an array library, nor of the layers above, not even inside a function."""
    package = ["gradproof", *path.relative_to(ROOT).parent.parts]
    imported = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) + 1 - node.level] if node.level else []
            imported |= {".".join([*start, *filter(None, [node.module]), alias.name]) for alias in node.names}
    forbidden = ("numpy", "scipy", "torch", "matplotlib", "gradproof.numeric", "gradproof.models", "gradproof.cli")
    assert not [name for name in imported if name.startswith(forbidden)]


@pytest.mark.parametrize("folder", FOLDERS)
def test_typed(folder: str) -> None:
    assert (ROOT / folder / "py.typed").is_file()


@pytest.mark.parametrize("folder", sorted({relative(path.parent) for path in MODULES}))
def test_every_folder_is_installed(folder: str) -> None:
    """setup.py installs a folder that says that it is a package; its first line says what is inside."""
    text = (ROOT / folder / "__init__.py").read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text))


def test_no_test_asserts_a_time() -> None:
    clocks = re.compile(r"perf_counter|process_time|thread_time|monotonic|time\.time\(")
    tests = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__).resolve()]
    assert [relative(path) for path in tests if clocks.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_file_that_a_page_names_is_there(page: str) -> None:
    named = re.findall(r"`((?:symbolic|numeric|models|cli|tests)/[\w/.]*)`", (ROOT / page).read_text(encoding="utf-8"))
    assert [name for name in named if not (ROOT / name).exists()] == []


def project_files() -> list[Path]:
    try:
        done = subprocess.run(
            ["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [ROOT / name for name in done.stdout.split("\0") if name]


def test_no_registry_is_named() -> None:
    """A file of the project names no host of a package registry; pip finds its own."""
    named = []
    for path in project_files():
        if not path.is_file() or b"\0" in (data := path.read_bytes()):
            continue
        named += [f"{relative(path)}: {found}" for found in REGISTRIES.findall(data.decode("utf-8", "replace"))]
    assert named == []


CLOCKS = re.compile(r"^\s*(?:from|import)\s+(?:time|datetime)\b", re.MULTILINE)


def test_nothing_symbolic_looks_at_a_clock() -> None:
    """The same input gives the same verdict on every machine: budgets count work."""
    symbolic = (path for path in MODULES if relative(path).startswith("symbolic/"))
    sources = [path for path in symbolic if CLOCKS.search(path.read_text(encoding="utf-8"))]
    assert sources == []
