"""MATLAB's spelling gives the program that NumPy's spelling gives, or an error that points at its place."""

from __future__ import annotations

import ast
import random

import pytest

from gradproof.symbolic.derive import derive
from gradproof.symbolic.errors import ExpressionError, GradproofError, ShapeError, UnknownNameError
from gradproof.symbolic.language.matlab.parser import parse_matlab
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.language.whitelist import place

SHAPES = {"A": "n,n", "B": "n,n", "X": "m,n", "x": "n", "y": "n", "u": "m", "a": "", "b": "", "R": "n,1", "Q": "n,m,k"}

# MATLAB, NumPy
SAME = [
    # the examples of matrixcalculus.org's documentation
    ("0.5*x'*A*x", "0.5*x @ A @ x"),
    ("A*exp(x)", "A @ exp(x)"),
    ("(y.*x)'*x", "(y * x) @ x"),
    ("a^b", "a**b"),
    ("norm1(A*x-y)", "sum(abs(A @ x - y))"),
    ("norm2(A*x-y)^2", "norm(A @ x - y)**2"),
    ("sum(log(exp(-u.*(X*x)) + vector(1)))", "sum(log(exp(-u * (X @ x)) + ones(m)))"),
    ("tr(A*X'*u*u'*X*B)", "trace(outer(A @ X.T @ u, u) @ X @ B)"),
    ("log(det(inv(A)))", "log(det(inv(A)))"),
    # products
    ("x'*y", "x @ y"),
    ("x*y'", "outer(x, y)"),
    ("x*u'", "outer(x, u)"),
    ("u'*X", "u @ X"),
    ("X'*u", "X.T @ u"),
    ("(A*B)'", "(A @ B).T"),
    ("A''", "A"),
    ("x''", "x"),
    ("A.*B", "A * B"),
    ("a*A*b", "a * A * b"),
    ("n*x", "n * x"),
    ("R'*A*R", "R.T @ A @ R"),
    ("x*R'", "x[:, None] @ R.T"),
    ("A*x*R'", "(A @ x)[:, None] @ R.T"),
    ("R*x'", "R @ x[None, :]"),
    # sums with vectors, as MATLAB broadcasts
    ("A + x", "A + x[:, None]"),
    ("A + x'", "A + x"),
    ("X.*x'", "X * x"),
    ("X./u", "X / u[:, None]"),
    ("2.*x", "2 * x"),
    ("2./x", "2 / x"),
    ("2.\\x", "x / 2"),
    # powers and signs
    ("-x.^2", "-x**2"),
    ("(-x).^2", "(-x)**2"),
    ("2^-1*x", "2**(-1) * x"),
    ("A^2", "A @ A"),
    ("A'^2", "A.T @ A.T"),
    ("A^-1*x", "inv(A) @ x"),
    ("x'*-y", "x @ -y"),
    ("x.^2'", "x**2"),
    # division
    ("A\\y", "solve(A, y)"),
    ("A\\X'", "solve(A, X.T)"),
    ("x'/A", "x @ inv(A)"),
    ("A/B", "A @ inv(B)"),
    ("A/2", "A / 2"),
    # functions
    ("sum(A)", "sum(A)"),
    ("sum(A, 1)*x", "sum(A, axis=0) @ x"),
    ("sum(A, 2)", "sum(A, axis=1)"),
    ("mean(X, 2)'*u", "mean(X, axis=1) @ u"),
    ("norm(x)", "norm(x)"),
    ("norm2(A)", "norm(A)"),
    ("norm2(a)", "abs(a)"),
    ("max(x)", "max(x)"),
    ("max(x, 0)", "maximum(x, 0)"),
    ("diag(x)*y", "diag(x) @ y"),
    ("diag(A)'*y", "diag(A) @ y"),
    ("dot(x, y)", "x @ y"),
    ("logsumexp(x)", "logsumexp(x)"),
    ("softmax(x)'*y", "softmax(x) @ y"),
    ("relu(X*x)", "relu(X @ x)"),
    ("transpose(X)*u", "X.T @ u"),
    ("exp(1)^a + pi", "exp(1)**a + pi"),
    # sizes that follow from the place
    ("tr(eye - A)^2", "trace(eye(n) - A)**2"),
    ("eye*A", "eye(n) @ A"),
    ("det(A + a*eye)", "det(A + a*eye(n))"),
    ("vector(1)'*x", "ones(n) @ x"),
    ("X*vector(1)", "X @ ones(n)"),
    ("X.*matrix(3)", "X * (3*ones(m, n))"),
    ("y - vector(0)", "y - zeros(n)"),
    ("S = vector(1); x'*S", "S = ones(n); x @ S"),
    ("ones(n,1)'*x", "ones(n) @ x"),
    ("ones(1,m)*X*x", "ones(m) @ X @ x"),
    ("ones(m,n).*X", "ones(m, n) * X"),
    ("eye(n)*x", "eye(n) @ x"),
    # indices from 1
    ("A(1,2)*x(1)", "A[0, 1]*x[0]"),
    ("A(:,1)'*x", "A[:, 0] @ x"),
    ("A(2,:)*x", "A[1, :] @ x"),
    ("x(end)*y", "x[-1]*y"),
    # statements
    ("r = A*x - y; r'*r", "r = A @ x - y; r @ r"),
    ("r = A*x - y\nnorm2(r)^2;", "r = A @ x - y\nnorm(r)**2"),
]  # fmt: skip


@pytest.mark.parametrize(("matlab", "numpy"), SAME, ids=[row[0] for row in SAME])
def test_same_system_as_numpy(matlab: str, numpy: str) -> None:
    mine, other = build(parse_matlab(matlab, SHAPES), SHAPES), build(numpy, SHAPES)
    assert mine.equations == other.equations
    assert mine.arrays == other.arrays


def test_every_node_has_its_place() -> None:
    text = "  r = x'*A*x + norm2(A*x - y)^2; (r + vector(1)'*x)"
    for statement in parse_matlab(text, SHAPES).statements:
        for node in ast.walk(statement.value):
            if isinstance(node, ast.Name) and node.id in SHAPES:
                start, end = place(node)
                assert text[start:end] == node.id


ERRORS: list[tuple[str, type[ExpressionError], str, str]] = [
    # text, error, message, the marked part
    ("x*y", ShapeError, "n×1 and n×1 do not fit under .*x'\\*y", "*"),
    ("A*u", ShapeError, "n against m", "*"),
    ("x + y'", ShapeError, "transpose one of them", "+"),
    ("A + X", ShapeError, "do not fit under +", "+"),
    ("x^2", ShapeError, r"\.\^", "^"),
    ("A^0.5", ShapeError, "whole exponent", "^"),
    ("x/y", ShapeError, r"\./", "/"),
    ("x\\y", ShapeError, "left stands a square matrix", "\\"),
    ("det(X)", ShapeError, "square", "det"),
    ("inv(x)", ShapeError, "square", "inv"),
    ("eye", ShapeError, "does not follow", "eye"),
    ("vector(1)", ShapeError, "does not follow", "vector(1)"),
    ("vector(x)", ShapeError, "takes a number", "x"),
    ("max(A)", ShapeError, "columns in MATLAB", "max"),
    ("norm(A)", ExpressionError, "singular value", "norm"),
    ("sum(x, 1)", ExpressionError, "rows and the columns", "1"),
    ("sum(A, 3)", ExpressionError, "rows and the columns", "3"),
    ("sin(x, y)", ExpressionError, "takes 1 argument", "sin"),
    ("Q*x", ShapeError, "3 axes", "Q"),
    ("foo(x)", UnknownNameError, "no function foo", "foo"),
    ("lgo(x)", UnknownNameError, "did you mean log", "lgo"),
    ("x'*z", UnknownNameError, "z is not declared", "z"),
    ("A(0,1)", ExpressionError, "from 1 on", "0"),
    ("A(1)", ExpressionError, ", is missing", ")"),
    ("a(1)", ShapeError, "no indices", "("),
    ("x y", ExpressionError, "an operator is missing", "y"),
    ("x'*[1 2]", ExpressionError, "declared beside", "["),
    ("x > y", ExpressionError, "comparisons", ">"),
    ("x' @ y", ExpressionError, "matrix product is written \\*", "@"),
    ("norm2(", ExpressionError, "ends too early", ""),
    ("x'*", ExpressionError, "ends too early", ""),
    ("(x", ExpressionError, r"\) is missing", ""),
    ("x)", ExpressionError, "missing before", ")"),
    ("x; y", ExpressionError, "only the last statement", "y"),
    ("A = x; x", ExpressionError, "defined already", "A"),
    ("lambda = x; lambda", ExpressionError, "cannot be the name", "lambda"),
    ("1e999*x", ExpressionError, "too large", "1e999"),
    ("", ExpressionError, "empty", ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "message", "marked"), ERRORS, ids=[row[0] for row in ERRORS])
def test_errors_point_at_their_place(text: str, kind: type[ExpressionError], message: str, marked: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        parse_matlab(text, SHAPES)
    if marked:
        assert text[caught.value.position : caught.value.end] == marked


def test_hostile_input_gives_an_error_at_once() -> None:
    for text in (
        "(" * 5000 + "x",
        "-" * 5000 + "x",
        "x" + "+x" * 5000,
        "x" + "'" * 9000,
        "x'*" * 7000,
        "A^" * 6000 + "2",
    ):
        try:
            parse_matlab(text, SHAPES)
        except ExpressionError:
            continue


@pytest.mark.parametrize("seed", range(20))
def test_random_strings_raise_nothing_else(seed: int) -> None:
    rng = random.Random(seed)
    pieces = ["x", "A", "y'", "X", "u", "a", "2", ".5", "*", ".*", "/", "\\", "^", ".^", "+", "-", "(", ")", "'", ",",
              ";", "sum(", "inv(", "eye", "vector(1)", "norm2(", "=", " ", "\n", "é", "⊙", "A(", ":"]  # fmt: skip
    for _ in range(150):
        text = "".join(rng.choice(pieces) for _ in range(rng.randrange(1, 14)))
        try:
            build(parse_matlab(text, SHAPES), SHAPES)
        except GradproofError:
            continue


PRINTED = [
    ("x'*A*x", "x", "(A + Aᵀ)x"),
    ("0.5*norm2(A*x - y)^2", "x", "Aᵀ(Ax − y)"),
    ("tr(A*B)", "A", "Bᵀ"),
    ("log(det(A))", "A", "A⁻ᵀ"),
    ("x'*inv(A)*y", "A", "−A⁻ᵀxyᵀA⁻ᵀ"),
    ("vector(1)'*x", "x", "𝟏"),
]


@pytest.mark.parametrize(("text", "wrt", "printed"), PRINTED, ids=[row[0] for row in PRINTED])
def test_printed(text: str, wrt: str, printed: str) -> None:
    assert str(derive(parse_matlab(text, SHAPES), SHAPES, wrt).gradients[wrt]) == printed


def test_gradient_equals_autograd() -> None:
    torch = pytest.importorskip("torch")
    from high_precision import compare_gradients

    torch.set_default_dtype(torch.float64)
    shapes = {"X": "m,n", "u": "m", "x": "n", "A": "n,n"}
    program = parse_matlab("sum(log(exp(-u.*(X*x)) + vector(1))) + x'*(A*A' + eye)^-1*x + norm2(X./u)", shapes)

    def forward(X: object, u: object, x: object, A: object) -> object:
        inverse = torch.linalg.inv(A @ A.T + torch.eye(3))
        return torch.log(torch.exp(-u * (X @ x)) + 1).sum() + x @ inverse @ x + (X / u[:, None]).norm()

    compare_gradients(program, shapes, forward, {"n": 3, "m": 2})
