"""Backward passes in Python files, right and wrong, against the derived gradient."""

from pathlib import Path

import pytest

from gradproof.numeric.check_file import check_file
from gradproof.symbolic.errors import GradproofError

SQUARES = ("sum((X @ W - Y)**2)", {"X": "n,d", "W": "d,k", "Y": "n,k"})
LAYERNORM = ("layernorm(x, eps=1e-5) * g", {"x": "n,d", "g": "d"})
EMBEDDING = ("E[w[t], k]", {"E": "V,d", "w": "T:index=V"})

LEAST_SQUARES = """
def forward(X, W, Y):
    R = X @ W - Y
    return (R**2).sum(), (X, W, R)

def backward(g, cache):
    X, W, R = cache
    return 2*g*R @ W.T, 2*g*X.T @ R, -2*g*R
"""
NORM = """
import numpy as np

def forward(x, g, eps=1e-5):
    mu = x.mean(-1, keepdims=True)
    s = np.sqrt(((x - mu)**2).mean(-1, keepdims=True) + eps)
    z = (x - mu)/s
    return z*g, (z, s, g)

def backward(dout, cache):
    z, s, g = cache
    u = dout*g
    dx = (u - u.mean(-1, keepdims=True) - z*(u*z).mean(-1, keepdims=True))/s
    return {"dx": dx, "dg": (dout*z).sum(0)}
"""
LOOKUP = """
import numpy as np

def forward(E, w):
    return E[w]

def backward(dout, E, w):
    dE = np.zeros_like(E)
    np.add.at(dE, w, dout)
    return dE, None
"""
GIVEN_VALUE = """
import numpy as np

def forward(x):
    return np.tanh(x)

def backward(x, y, out):
    return y*(1 - out**2)
"""
NO_COTANGENT = """
def forward(X, W, Y):
    return ((X @ W - Y)**2).sum()

def backward(X, W, Y):
    R = X @ W - Y
    return 2*R @ W.T, 2*X.T @ R, -2*R
"""
TANH = """
import numpy as np

def forward(x):
    return np.tanh(x)

def backward(dout, x):
    return dout*(1 - np.tanh(x)**2)
"""
SQUARE = """
import numpy as np

def forward(x):
    return x**2

def backward(dout, x):
    return 2*dout*x
"""
COUNTING = "buffer = 0\n" + LEAST_SQUARES.replace(
    "    X, W, R = cache", "    global buffer; X, W, R = cache; buffer += 1"
).replace("-2*g*R", "-2*g*R*(1 + 1e-12*buffer)")

NUMPY = [
    (LEAST_SQUARES, SQUARES, "agrees", ""),
    (LEAST_SQUARES.replace("2*g*X.T", "2*X.T"), SQUARES, "refuted", "the gradient by W differs at [0, 0]"),
    (LEAST_SQUARES.replace("2*g*X.T @ R", "2*g*R.T @ X"), SQUARES, "refuted", "it is transposed"),
    (LEAST_SQUARES.replace("-2*g*R", "2*g*R"), SQUARES, "refuted", "it is −1 times the right one"),
    (LEAST_SQUARES.replace("X @ W - Y", "Y - X @ W"), SQUARES, "refuted", "the gradient by X differs"),
    (LEAST_SQUARES.replace("(R**2).sum()", "(R**2).mean()"), SQUARES, "refuted", "the value of forward differs"),
    (NO_COTANGENT, SQUARES, "agrees", ""),
    (NO_COTANGENT.replace("R = X", "X += 1; R = X"), SQUARES, "refuted", "changes its input X in place"),
    (NORM, LAYERNORM, "agrees", ""),
    (NORM.replace(" - u.mean(-1, keepdims=True)", ""), LAYERNORM, "refuted", "the gradient by x differs"),
    (NORM.replace("(dout*z).sum(0)", "(dout*z).sum()"), LAYERNORM, "refuted", "the gradient by g has the shape (1,)"),
    (NORM.replace("z*g, (z", "(z*g).astype('f4'), (z"), LAYERNORM, "agrees", ""),
    (NORM.replace('"dx": dx, ', ""), LAYERNORM, "refuted", "returns no gradient by x"),
    (LOOKUP, EMBEDDING, "agrees", ""),
    # repeated tokens are lost
    (LOOKUP.replace("np.add.at(dE, w, dout)", "dE[w] += dout"), EMBEDDING, "refuted", "the gradient by E differs"),
    (GIVEN_VALUE, ("tanh(x)", {"x": "n"}), "agrees", ""),
    (GIVEN_VALUE.replace("out**2", "x**2"), ("tanh(x)", {"x": "n"}), "refuted", "the gradient by x differs"),
    # wrong from a size on, from a magnitude on
    (TANH, ("tanh(x)", {"x": "n"}), "agrees", ""),
    (TANH.replace("x)**2)", "x)**2)*(1 + (len(x) > 5))"), ("tanh(x)", {"x": "n"}), "refuted", "2 times"),
    (TANH.replace("x)**2)", "x)**2)*(1 + (len(x) > 30))"), ("tanh(x)", {"x": "n"}), "refuted", "for n = 40"),
    (SQUARE, ("x**2", {"x": "n"}), "agrees", ""),
    (SQUARE.replace("*x", "*np.clip(x, -50, 50)"), ("x**2", {"x": "n"}), "refuted", "the gradient by x differs"),
    (SQUARE.replace("*x", "*np.where(abs(x) < 2e-3, 0, x)"), ("x**2", {"x": "n"}), "refuted", "by x differs"),
    (SQUARE.replace("*x", "*np.where(x > 30, np.nan, x)"), ("x**2", {"x": "n"}), "agrees", "is not finite for numbers"),
    (COUNTING, SQUARES, "refuted", "when it runs again"),
    (NO_COTANGENT.replace("-2*R", "'R'"), SQUARES, "refuted", "by Y is no array of real numbers in your code"),
    (NO_COTANGENT.replace("-2*R", "R*1j"), SQUARES, "refuted", "by Y is no array of real numbers in your code"),
    (NO_COTANGENT.replace("-2*R", "[1, [2]]"), SQUARES, "refuted", "by Y is no array of real numbers in your code"),
]  # fmt: skip


def written(tmp_path: Path, code: str) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(code, encoding="utf-8")
    return path


@pytest.mark.parametrize(("code", "question", "expected", "shown"), NUMPY)
def test_numpy_pairs(tmp_path: Path, code: str, question: tuple, expected: str, shown: str) -> None:
    verdict = check_file(written(tmp_path, code), *question)
    assert verdict.verdict == expected, verdict
    assert shown in str(verdict)
    assert verdict.correct


def test_the_entry_is_named(tmp_path: Path) -> None:
    code = LEAST_SQUARES.replace("2*g*X.T @ R", "2*g*R.T @ X")
    example = check_file(written(tmp_path, code), *SQUARES, wrt="W").counterexample
    assert example is not None
    assert (example.name, example.place) == ("the gradient by W", (0, 1))
    assert example.sizes == {"n": 2, "d": 2, "k": 2}
    assert set(example.inputs) == {"X", "W", "Y", "cotangent"}
    assert "your code gives" in str(example)


SOFTMAX = """
import torch

class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, S):
        P = torch.softmax(S, dim=1)
        ctx.save_for_backward(P)
        return P

    @staticmethod
    def backward(ctx, G):
        (P,) = ctx.saved_tensors
        return P*(G - (P*G).sum(1, keepdim=True))
"""
SEPARATE = """
from torch.autograd import Function

class Scaled(Function):
    @staticmethod
    def forward(S, t, n):
        return S*t/n

    @staticmethod
    def setup_context(ctx, inputs, output):
        S, t, ctx.n = inputs
        ctx.save_for_backward(S, t)

    @staticmethod
    def backward(ctx, G):
        S, t = ctx.saved_tensors
        return G*t/ctx.n, (G*S).sum()/ctx.n, None
"""
ROWS = ("softmax(S)", {"S": "n,m"})
SCALED = ("S*t/n", {"S": "n,m", "t": ""})
TORCH = [
    (SOFTMAX, ROWS, "agrees", ""),
    (SOFTMAX.replace("P*(G - (P*G).sum(1, keepdim=True))", "P*G"), ROWS, "refuted", "by S differs"),
    (SOFTMAX.replace("(1, keepdim", "(0, keepdim"), ROWS, "refuted", "by S differs"),
    (SEPARATE, SCALED, "agrees", ""),
    (SOFTMAX, ("sum(softmax(S))", {"S": "n,m"}), "refuted", "the value of forward has the shape ()"),
    (SEPARATE.replace(".sum()/ctx.n", ".sum()"), SCALED, "refuted", "the gradient by t differs"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "question", "expected", "shown"), TORCH)
def test_autograd_functions(tmp_path: Path, code: str, question: tuple, expected: str, shown: str) -> None:
    pytest.importorskip("torch")
    verdict = check_file(written(tmp_path, code), *question)
    assert verdict.verdict == expected, verdict
    assert shown in str(verdict)


ERRORS = [
    ("x = 1", "holds neither a torch.autograd.Function nor"),
    ("1/0", "ZeroDivisionError: division by zero (mine.py, line 1)"),
    ("import sys; sys.exit(3)", "mine.py cannot be run: SystemExit"),
    ("def f(:", "SyntaxError"),
    ("def forward(X, V): return X\ndef backward(g, X): return g", "forward has a parameter V"),
    ("def forward(X, W): return X\ndef backward(g, X): return g", "forward has no parameter Y"),
    (LEAST_SQUARES.replace("X, W, R = cache", "X, W = cache"), "ValueError: too many values to unpack"),
    (LEAST_SQUARES.replace("return 2*g*R @ W.T, ", "return "), "backward returns 2 gradients; expected are 3"),
]


@pytest.mark.parametrize(("code", "message"), ERRORS)
def test_files_that_do_not_fit(tmp_path: Path, code: str, message: str) -> None:
    with pytest.raises(GradproofError) as error:
        check_file(written(tmp_path, code), *SQUARES)
    assert message in str(error.value)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(GradproofError, match="there is no file"):
        check_file(tmp_path / "none.py", *SQUARES)


def test_what_the_file_prints_goes_to_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check_file(written(tmp_path, "print('hello')\n" + LEAST_SQUARES), *SQUARES)
    captured = capsys.readouterr()
    assert captured.out == "" and "hello" in captured.err
