"""The expression language read: what passes, and where each error points."""

import ast
import contextlib
import pickle
import random

import pytest

from gradproof.symbolic.errors import ExpressionError, ShapeError
from gradproof.symbolic.language.syntax import (
    Program,
    eval_integer,
    parse,
    parse_declaration,
    parse_shapes,
    place,
    reduction,
)

# text -> its statements as Python prints them; name[indices] = value
READ = [
    ("x", ["x"]),
    ("sum((X @ W - Y)**2)", ["sum((X @ W - Y) ** 2)"]),
    ("  logdet(S) / 2 + x @ inv(S) @ x / 2 ;\n", ["logdet(S) / 2 + x @ inv(S) @ x / 2"]),
    ("A = softmax(S, axis=1); sum(A@V)", ["A = softmax(S, axis=1)", "sum(A @ V)"]),
    ("Y = X @ W", ["Y = X @ W"]),
    ("A = X.T\nsum(A)", ["A = X.T", "sum(A)"]),
    ("A = X.T\r\n\r\nsum(\n  A\n)", ["A = X.T", "sum(A)"]),
    ("R[i,j] = sum[k](X[i,k]*W[k,j]) - Y[i,j]; sum[i,j](R[i,j]**2)",
     ["R[i,j] = sum[k](X[i, k] * W[k, j]) - Y[i, j]", "sum[i, j](R[i, j] ** 2)"]),
    ("h[0,k] = h0[k]; h[t+1,k] = a*h[t,k]", ["h[k] = h0[k]", "h[k] = a * h[t, k]"]),
    ("exp(z[i])/sum[j](exp(z[j]))", ["exp(z[i]) / sum[j](exp(z[j]))"]),
    ("sum[t=0:n-1](v[t])", ["sum[t:0:n - 1](v[t])"]),
    ("sum[i, t=1:n](A[i,t])", ["sum[i, t:1:n](A[i, t])"]),
    ("mean [ t = 1 : ] (v[t])", ["mean[t:1](v[t])"]),
    ("max[t=:n](v[t])", ["max[t::n](v[t])"]),
    ("prod[k=1:n+1](k) * min[i](x[i])", ["prod[k:1:n + 1](k) * min[i](x[i])"]),
    ("sum(A, axis=(0, 1), keepdims=True)", ["sum(A, axis=(0, 1), keepdims=True)"]),
    ("sum(A, axis=None)", ["sum(A, axis=None)"]),
    ("A[0, i] + x[1:] @ x[:-1] + A[:, None][::2, 0]", ["A[0, i] + x[1:] @ x[:-1] + A[:, None][::2, 0]"]),
    ("ones((n,)) + eye(n, m)", ["ones((n,)) + eye(n, m)"]),
    ("einsum('ij,jk->ik', A, B.mT)", ["einsum('ij,jk->ik', A, B.mT)"]),
    ('gelu(x, approximate="tanh")', ["gelu(x, approximate='tanh')"]),
    ("where(x > 0, x, -x)", ["where(x > 0, x, -x)"]),
    ("where((x > 0) & ~(y <= 1) | M, x, 0)", ["where((x > 0) & ~(y <= 1) | M, x, 0)"]),
    ("where(x > 0 and not y <= 1 or M, x, 0)", ["where((x > 0) & ~(y <= 1) | M, x, 0)"]),
    ("where(a == 1 and b != 2 and c >= 3, 1, 0)", ["where((a == 1) & (b != 2) & (c >= 3), 1, 0)"]),
    ("-x**-2 + +.5e-3*1.", ["-x ** (-2) + +0.0005 * 1.0"]),
    ("λ*𝐱 + ϵ + x̂", ["λ * x + ε + x̂"]),
    ("E[w[t], k]*v[i+j-1]", ["E[w[t], k] * v[i + j - 1]"]),
    ("9**9**9**9", ["9 ** 9 ** 9 ** 9"]),
    ("x\xa0+\ty", ["x + y"]),
    ("y=1;;x", ["y = 1", "x"]),
    ("lambda_*match", ["lambda_ * match"]),
    ("(" * 49 + "x" + ")" * 49, ["x"]),
    ("-" * 50 + "x", ["-" * 50 + "x"]),
]  # fmt: skip

# text, a part of the message, where the caret stands (None: no place)
REFUSED = [
    ("", "empty", None),
    (" \n;", "empty", 0),
    ("x^2", "use ** for powers", 1),
    ("x' @ x", ".T", 1),
    ("X @ (Y)'", ".T", 7),
    ("f'a'", ".T", 1),
    ('f"a"', "stands alone", 1),
    ("lambda x: x", "a lambda is not part of an expression", 0),
    ("a + lambda*b", "may be called lam", 4),
    ("x if y else z", "use where", 2),
    ("sum(x for x in y)", "sum[i](x[i])", 6),
    ("import os", "cannot be a name", 0),
    ("𝐝𝐞𝐟", "cannot be a name", 0),
    ("__import__('os')", "does not start with _", 0),
    ("x.__class__", "does not start with _", 2),
    ("np.exp(x)", "write exp without np.", 0),
    ("x.argsort()", "functions are written argsort(x)", 0),
    ("n*x.shape[0]", "use the name of the size", 2),
    ("x # a comment", "comments are not", 2),
    ("x // 2", "division is /", 2),
    ("x % 2", "remainder", 2),
    ("{x}", "round or square", 0),
    ("\\frac{1}{2}", "TeX", 0),
    ("x := 3", "a definition is written", 2),
    ("A[..., 0]", "write the axes out", 2),
    ("a − b", "plain minus", 2),
    ("Xᵀ", "a transpose is written .T", 1),
    ("x²", "use ** for powers", 1),
    ("x₁", "has no meaning", 1),
    ("a\u200bb", "U+200B, zero width space", 1),
    ("a\0b", "U+0000", 1),
    ("a\udc80b", "U+DC80", 1),
    ("2x", "write 2*x", 1),
    ("1and x", "a space is missing", 1),
    ("a b", "missing between a and b", 2),
    ("2(x)", "missing between 2 and (", 1),
    ("(a)(b)", "an operator is missing", 3),
    ("(a)b", "missing between ) and b", 3),
    ("a +", "missing after +", 3),
    ("a + * b", "missing after +", 3),
    ("* b", "missing before *", 0),
    ("sum(x *)", "missing after *", 7),
    ("f(a,,b)", "missing before ,", 4),
    ("f(*a)", "missing before *", 2),
    ("f(**a)", "missing before **", 2),
    ("()", "missing between the brackets", 1),
    ("A[]", "missing between the brackets", 2),
    ("x.", "missing after .", 2),
    ("x.+", "a dot is followed by T", 2),
    ("(a", "never closed", 0),
    ("a)", "never opened", 1),
    ("(a]", "( is closed by ]", 2),
    ("(a; b)", "never closed", 0),
    ("a; b", "only the last statement goes without a name", 0),
    ("A = 1; A = 2", "A is defined twice", 7),
    ("a = b = c", "a second =", 6),
    ("= 3", "missing before =", 0),
    ("S =", "missing after =", 3),
    ("A[] = x", "something is missing between", 2),
    ("A+1 = x", "left of =", 0),
    ("True = x", "left of =", 0),
    ("A[i,i] = x[i]", "stands twice", 4),
    ("sum = x", "cannot be defined", 0),
    ("(a = b)", "a comparison is written ==", 3),
    ("x[a=1]", "a comparison is written ==", 3),
    ("x += 1", "missing after +", 3),
    ("f(a=1, a=2)", "written once", 7),
    ("X: n", "shapes are declared beside", 1),
    ("f(a:b)", "index brackets only", 3),
    ("sum[i,j]", "followed by (…)", 7),
    ("sum[i] + 1", "followed by (…)", 5),
    ("sum[0](x)", "an index is a name", 4),
    ("sum[t:0:n](x[t])", "an index is a name", 4),
    ("sum[t=3](x[t])", "a range is written with a colon", 7),
    ("sum[t=0:n:2](x[t])", "start and an end only", 9),
    ("sum[i,i](x[i])", "a name of its own", 6),
    ("sum[i,](x[i])", "an index is a name", 6),
    ("sum[i](x[i], y)", "takes one expression", 0),
    ("softmax[i](x)", "take indices in brackets", 0),
    ("x[1](y)", "a product is written with *", 0),
    ("sum + 1", "sum is a function", 0),
    ("a < b < c", "(a < b) & (b < c)", 0),
    ("where(x > 0 & y > 0, 1, 0)", "(a < b) & (b < c)", 6),
    ("where(x > 0 & M, 1, 0)", "put brackets around each", 10),
    ("where(a + b & M, 1, 0)", "put brackets around each", 6),
    ("where(a > b & M, 1, 0)", "put brackets around each", 6),
    ("a, b", "a statement has one value", 0),
    ("[a, b] + c", "a statement has one value", 0),
    ("x + None", "None is not a value", 4),
    ("'ab' + x", "'ab' is not a value", 0),
    ("'ab", "has no partner", 0),
    ("f('a\nb')", "has no partner", 2),
    ("x + 123456789012345678901", "an integer of 21 digits", 4),
    ("1e999", "too large", 0),
    ("x + 1e-999", "too small", 4),
    ("007", "does not start with 0", 0),
    ("f(a=1, b)", "does not read as an expression", None),
    ("αβ + é*", "missing after *", 7),
    ("αβ + (é, 2)", "one value", 5),
    ("sum(x) +\nsum(y)", "missing after +", 8),
    ("(" * 65 + "x" + ")" * 65, "more than 64 brackets", 64),
    ("-" * 65 + "x", "more than 64 signs", 64),
    ("x" + ".T" * 151, "more than 150 operations", 0),
    ("2" + "**1" * 200, "more than 150 operations", 0),
    ("1" + "*1" * 200, "more than 150 operations", 0),
    ("1" + "+1" * 2000, "too many operators", 3001),
    ("x" * 20_001, "at most 20,000", None),
]  # fmt: skip


def shown(program: Program) -> list[str]:
    lines = []
    for statement in program.statements:
        indices = "" if statement.indices is None else f"[{','.join(statement.indices)}]"
        left = "" if statement.name is None else f"{statement.name}{indices} = "
        lines.append(left + ast.unparse(statement.value))
    return lines


@pytest.mark.parametrize(("text", "statements"), READ, ids=[text[:30] for text, _ in READ])
def test_read(text: str, statements: list[str]) -> None:
    assert shown(parse(text)) == statements


@pytest.mark.parametrize(("text", "part", "caret"), REFUSED, ids=[ascii(text)[:30] for text, _, _ in REFUSED])
def test_refused(text: str, part: str, caret: int | None) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    error = caught.value
    assert part in error.message
    if caret is not None or "at most" in part or not text:
        assert error.position == caret
    str(error).encode()  # prints on any terminal
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_places_are_those_of_the_users_text() -> None:
    text = "α[i] = (β [ i ] * 2)\nsum[i, t=0:n]( α[i] and\n (x > ψ_2) )"
    for statement in parse(text).statements:
        for node in ast.walk(statement.value):
            start, end = place(node)
            if isinstance(node, ast.Name | ast.Constant):
                assert text[start:end] == ast.unparse(node)
    last = parse(text).statements[1]
    assert text[last.start : last.end] == text[text.index("sum") :]
    assert text[slice(*place(reduction(last.value).ranges[1].node))] == "t=0:n"
    assert (
        text[slice(*place(reduction(last.value).body))] == "α[i] and\n (x > ψ_2"
    )  # Python's places leave brackets out


def test_reduction() -> None:
    found = reduction(parse("max[i, t=1:, s=:n, r=1:n-1](x[i])").statements[0].value)
    assert found is not None and found.name == "max" and ast.unparse(found.body) == "x[i]"
    bounds = [(r.name, r.lower and ast.unparse(r.lower), r.upper and ast.unparse(r.upper)) for r in found.ranges]
    assert bounds == [("i", None, None), ("t", "1", None), ("s", None, "n"), ("r", "1", "n - 1")]
    assert reduction(parse("max(x)").statements[0].value) is None


def test_left_side_of_a_recurrence() -> None:
    first, second, third = parse("h[0,k] = h0[k]; h[t+1,k] = a*h[t,k]; R[i,j] = x[i]*y[j]").statements
    assert [ast.unparse(part) for part in (*(first.place or ()), *(second.place or ()))] == ["0", "k", "t + 1", "k"]
    assert third.place is None and third.indices == ("i", "j")


def test_error_shows_a_window() -> None:
    with pytest.raises(ExpressionError) as caught:
        parse("a + b\n" + "a + b + " * 30 + "c ^ d" + " + e" * 30 + "\nf")
    message, line, carets = str(caught.value).split("\n")
    assert "powers" in message and len(line) == 74
    assert carets.strip() == "^" and line[carets.index("^")] == "^" and "…" in line[:3]


HOSTILE = [
    *("(", "[", "-", "~", "not ", "x.T", "x[", "f(", "f(a=", "sum[i](", "x**", "x@-", "1+", "a,", "'", ";", "\n", "x;"),
    *("a=", ":", ")", "é", "𝐱+", "9", "1e9", ".", "a and ", "a<", "x[i,", "f(x)(", "{", "\0", "\ud800"),
]


# What grows exponentially never ends: the guard against hangs finds it.
@pytest.mark.timeout(300)
@pytest.mark.parametrize("piece", HOSTILE, ids=ascii)
@pytest.mark.parametrize("length", [4_000, 20_000, 1_000_000])
def test_hostile_input_is_refused_at_once(piece: str, length: int) -> None:
    text = piece * (length // len(piece))
    for attempt in (text, text + "x", text + "x" + ")" * text.count("(")):
        try:
            parse(attempt)
        except ExpressionError as error:
            str(error).encode()


@pytest.mark.timeout(300)
def test_nested_calls_do_not_take_pythons_parser_exponential_time() -> None:
    for inner in ("x", "a=1, x", "x y", "a=1, *x", "x for", "x=", "0 x", "[a=1, b]", "x:"):
        for wrapper in ("f({})", "({})", "a[{}]", "f(a=1, b, {})", "sum[i]({})", "-({})", "f(a, {})", "({}, a=1)"):
            text = inner
            for _ in range(48):
                text = wrapper.format(text)
            with contextlib.suppress(ExpressionError):
                parse(text)


@pytest.mark.filterwarnings("error")
def test_mutated_input_gives_a_result_or_an_expression_error() -> None:
    random_ = random.Random(0)
    seeds = [text for text, _ in READ if len(text) < 90] + [text for text, _, _ in REFUSED if 0 < len(text) < 90]
    letters = [*"()[]{}.,;:=+-*/@<>&|~!^'\"\\ \n\t\0_0123456789eixXTλé²𝐱\ud800", "sum", "and", "not", "**", "=="]
    for _ in range(3000):
        text = random_.choice(seeds)
        for _ in range(random_.randint(1, 6)):
            k = random_.randint(0, len(text))
            match random_.randrange(4):
                case 0:
                    text = text[:k] + random_.choice(letters) + text[k:]
                case 1:
                    text = text[:k] + text[k + 1 :]
                case 2:
                    other = random_.choice(seeds)
                    text = text[:k] + other[random_.randint(0, len(other)) :]
                case _:
                    j = random_.randint(0, len(text))
                    text = text[: min(j, k)] + text[min(j, k) : max(j, k)] * 2 + text[max(j, k) :]
        check_any(text)


def check_any(text: str) -> None:
    try:
        program = parse(text)
    except ExpressionError as error:
        assert error.position is None or 0 <= error.position <= len(text)
        str(error).encode()
    else:
        for statement in program.statements:
            again = ast.unparse(statement.value)
            for node in ast.walk(statement.value):
                if isinstance(node, ast.expr):
                    first, last = place(node)
                    assert 0 <= first < last <= len(text), (text, again)


# Declarations: text -> name, sizes, properties, options
DECLARED = [
    ("X:n,d", "X", ["n", "d"], (), {}),
    ("lam", "lam", [], (), {}),
    ("lam:", "lam", [], (), {}),
    ("s::iid=0,1", "s", [], ("iid",), {"iid": ["0", "1"]}),
    (" v : n+m-1 ", "v", ["n + m - 1"], (), {}),
    ("A:3,2*(n+1)", "A", ["3", "2 * (n + 1)"], (), {}),
    ("S:n,n:symmetric", "S", ["n", "n"], ("symmetric",), {}),
    ("S:n,n:psd:iid=mu,1/n", "S", ["n", "n"], ("psd", "iid"), {"iid": ["mu", "1 / n"]}),
    ("p:n:simplex", "p", ["n"], ("simplex",), {}),
    ("w:T:index=V", "w", ["T"], ("index",), {"index": ["V"]}),
    ("x:n:iid=max(a,b),1", "x", ["n"], ("iid",), {"iid": ["max(a, b)", "1"]}),
]  # fmt: skip

UNDECLARED = [
    ("", "the name is missing", 0),
    (":n", "the name is missing", 0),
    ("X+1:n", "starts with a name", 0),
    ("lambda:n", "may be called lam", 0),
    ("_x:n", "does not start with _", 0),
    ("sum:n", "sum is a function", 0),
    ("X:n,,d", "a size is missing", 4),
    ("X:n,", "a size is missing", 4),
    ("X:n**m", "a size is a name", 2),
    ("X:n,n/2", "a size is a name", 4),
    ("X:1.5", "a size is a name", 2),
    ("X:n,m d", "an operator is missing", 6),
    ("X:0", "at least 1", 2),
    ("X:n,2-3", "at least 1", 4),
    ("X:(n", "never closed", 2),
    ("X:a=n", "one expression", 2),
    ("S:n,n:symetric", "did you mean symmetric? there are symmetric, psd, diagonal", 6),
    ("S:n,n:", "an empty property is not known", 6),
    ("S:n,m:symmetric", "two axes of one size", 6),
    ("p::simplex", "needs an axis", 3),
    ("x:n:iid", "written iid=MEAN,VARIANCE", 4),
    ("x:n:iid=0", "written iid=MEAN,VARIANCE", 4),
    ("x:n:iid=0,", "a value is missing", 10),
    ("x:n:index=a,b", "written index=SIZE", 4),
    ("x:n:simplex=1", "written simplex", 4),
    ("x:n:simplex:simplex", "declared twice", 12),
    ("x:n:index=V/2", "a size is a name", 10),
]  # fmt: skip


@pytest.mark.parametrize(("text", "name", "sizes", "properties", "options"), DECLARED)
def test_declaration(text: str, name: str, sizes: list[str], properties: tuple[str, ...], options: dict) -> None:
    found = parse_declaration(text)
    assert (found.name, [ast.unparse(size) for size in found.sizes], found.properties) == (name, sizes, properties)
    assert {key: [ast.unparse(value) for value in values] for key, values in found.options.items()} == options
    for size in found.sizes:
        assert "".join(text[slice(*place(size))].split()) in "".join(text.split())


@pytest.mark.parametrize(("text", "part", "caret"), UNDECLARED)
def test_declaration_refused(text: str, part: str, caret: int) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_declaration(text)
    assert part in caught.value.message
    assert caught.value.position == caret


def test_shapes() -> None:
    found = parse_shapes({"X": "n,d", "lam": "", "a": None, "A": ("n", 3), "k": 2, "S": "n,n:symmetric", "e": ()})
    sizes = {name: [ast.unparse(size) for size in declaration.sizes] for name, declaration in found.items()}
    assert sizes == {"X": ["n", "d"], "lam": [], "a": [], "A": ["n", "3"], "k": ["2"], "S": ["n", "n"], "e": []}
    assert found["S"].properties == ("symmetric",)


@pytest.mark.parametrize(
    "shapes", [{"X": 1.5}, {"X": ("n", True)}, {"X": b"n"}, {1: "n"}, "X:n", {"X": "n", " X": "n"}, {"X": 0}]
)
def test_shapes_refused(shapes: object) -> None:
    with pytest.raises(ExpressionError):
        parse_shapes(shapes)


def test_sizes_are_computed() -> None:
    size = parse_declaration("v:2*(n+1)-m").sizes[0]
    assert eval_integer(size, {"n": 3, "m": 5}) == 3
    with pytest.raises(ExpressionError, match="no integer value"):
        eval_integer(size, {"n": 3})
    with pytest.raises(ShapeError):
        parse_declaration("S:n:psd")
