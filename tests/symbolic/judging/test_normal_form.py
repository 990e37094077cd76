"""The normal form: identities that it must see, near misses that it must not, and random expressions that it keeps."""

import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from gradproof.symbolic.equations.calculus import adjoint, whole
from gradproof.symbolic.equations.expr import Access
from gradproof.symbolic.equations.system import Array, System, out_letters
from gradproof.symbolic.errors import GradproofError
from gradproof.symbolic.judging.normal_form import Normal, vanishes
from gradproof.symbolic.judging.polynomials import NoNormalForm, expr_of
from gradproof.symbolic.judging.sampling import Pair, compared
from gradproof.symbolic.language.reader import build

SHAPES = {
    "x": "n", "y": "n", "q": "n", "w": "m", "A": "n,n", "B": "n,m", "S": "n,m", "a": "", "b": "", "p": "",
    "D": "n,n:symmetric", "T": "n,m:simplex", "H": "n,n:diagonal", "O": "n,n:orthogonal",
}  # fmt: skip

EQUAL = [
    ("(x + y)**2", "x**2 + 2*x*y + y**2"),
    ("sum(softmax(S))", "n"),
    ("sum[t=0:n](t**2) + 0*a", "n*(n - 1)*(2*n - 1)/6"),
    ("sum[t=1:n](t**3*a)", "a*(n*(n - 1)/2)**2"),
    ("sum(softmax(S, axis=0))", "m"),
    ("tanh(x)", "2*sigmoid(2*x) - 1"),
    ("tanh(x)", "sinh(x)/cosh(x)"),
    ("sigmoid(-x)", "1 - sigmoid(x)"),
    ("softplus(x) - softplus(-x)", "x"),
    ("exp(a + 2*b)", "exp(a)*exp(b)**2"),
    ("log(exp(a)*sum(exp(x)))", "a + logsumexp(x)"),
    ("log(6*a)", "log(a) + log(2) + log(3)"),
    ("log_softmax(S)", "log(softmax(S))"),
    ("sin(x)**4 - cos(x)**4", "1 - 2*cos(x)**2"),
    ("sin(x - y)", "-sin(y - x)"),
    ("sqrt(x**2 + 0*y)", "abs(x)"),
    ("sqrt(2*a)*sqrt(8*a)", "4*a"),
    ("relu(x)", "(x + abs(x))/2"),
    ("relu(x) - relu(-x)", "x"),
    ("maximum(x, y)", "(x + y + abs(x - y))/2"),
    ("x**p * x", "x**(p + 1)"),
    ("x @ A @ y", "y @ A.T @ x"),
    ("x @ D @ y", "y @ D @ x"),
    ("sum(D @ D.T)", "sum(D @ D)"),
    ("T @ ones(m)", "ones(n)"),
    ("H @ x", "diag(H)*x"),
    ("O.T @ (O @ x)", "x"),
    ("inv(A) @ A", "eye(n)"),
    ("A @ (inv(A) @ x)", "x"),
    ("sum((x - mean(x))**2)", "sum(x**2) - n*mean(x)**2"),
    ("mean(layernorm(x, eps=0.5)**2)", "1 - 0.5/(mean((x - mean(x))**2) + 0.5)"),
    ("sum(layernorm(x))", "0*a"),
    ("1/a - 1/(a + 1)", "1/(a*(a + 1))"),
    ("sum(1/x - 1/(x + 1))", "sum(1/(x*(x + 1)))"),
    ("sum[i](sum[j](S[i,j]*exp(S[i,j]))/sum[j](exp(S[i,j])))", "sum(S*softmax(S, axis=1))"),
    ("sum[i,j](y[i]*sin(x[i] - x[j]))", "-sum[i,j](y[j]*sin(x[i] - x[j]))"),
    ("trace(A @ B @ S.T)", "sum(B * (A.T @ S))"),
    ("norm(A)**2", "trace(A.T @ A)"),
    ("sum[t=1:n](x[t]*x[t-1])", "sum[t=0:n-1](x[t]*x[t+1])"),
    ("sum[i,j](x[i]*(i == j)*y[j])", "x @ y"),
    ("sum[i](x[i]*(i < n))", "sum(x)"),
    ("where(x > 0, x, 0)", "relu(x)"),
    ("where(x > y, exp(x), exp(y))", "exp(maximum(x, y))"),
    ("softplus(x)", "relu(x) + log(1 + exp(-abs(x)))"),
    ("1/(1 + abs(x))", "where(x > 0, 1/(1 + x), 1/(1 - x))"),
    ("exp(where(x > y, x, -inf))", "where(x > y, exp(x), 0)"),
    ("outer(x, y) @ q", "x*(y @ q)"),
]

DIFFERENT = [
    ("softmax(S)", "softmax(S, axis=0)"),
    ("x @ A @ y", "x @ A.T @ y"),
    ("sqrt(x**2 + 0*y)", "x"),
    ("abs(x)", "relu(x)"),
    ("log(x**2)", "2*log(x) + 0*y"),
    ("sum(x)*sum(y)", "x @ y"),
    ("sum(x**2)", "sum(x)**2"),
    ("mean(layernorm(x, eps=0.5)**2)", "1 + 0*a"),
    ("relu(x)", "x + 0*y"),
    ("(x > 0)*1", "1 + 0*x"),
    ("A @ inv(B @ B.T) @ A", "A @ A @ inv(B @ B.T)"),
    ("O @ x", "x"),
    ("sum[t=0:n-1](x[t])", "sum(x)"),
    ("sqrt(a)*sqrt(b)", "-sqrt(a*b)"),
    ("1/(2 - x)", "1/(x - 2)"),
]


def difference(left: str, right: str, **options: object) -> bool:
    """Whether left − right, both of one shape, has the normal form 0."""
    system = build(f"left = {left}; right = {right}; left - right", SHAPES)
    (output,) = system.outputs
    outs = out_letters(system.arrays[output].rank)
    return vanishes(system, Access(output, *outs), system.arrays[output].axes(outs), **options)


@pytest.mark.parametrize(("left", "right"), EQUAL)
def test_equal_expressions_have_one_normal_form(left: str, right: str) -> None:
    assert difference(left, right)


@pytest.mark.parametrize(("left", "right"), DIFFERENT)
@pytest.mark.parametrize("generic", [False, True])
def test_different_expressions_have_different_ones(left: str, right: str, generic: bool) -> None:
    assert not difference(left, right, generic=generic)


def test_apart_from_kinks() -> None:
    assert not difference("where(x >= y, 1, 0)", "where(x > y, 1, 0)")
    assert difference("where(x >= y, 1, 0)", "where(x > y, 1, 0)", generic=True)
    # the largest entry equals its maximum always, not at single points only
    assert not difference("sum(x == max(x)) + 0*x", "0*x", generic=True)


def test_work_is_bounded() -> None:
    long = " + ".join(f"x[{k}]" for k in range(12))
    with pytest.raises(NoNormalForm):
        difference(f"({long})**9 + 0*a", "a")


FUNCTIONS = (
    "exp({})", "log(1 + ({})**2)", "tanh({})", "sigmoid({})", "relu({})", "abs({})", "sin({})", "softplus({})",
    "({})**2", "sqrt(1 + ({})**2)", "1/(2 + ({})**2)", "-({})", "sqrt(({})**2 + 0*y)", "({})**3", "sign({})", "cos({})",
)  # fmt: skip
VECTORS = (
    "x", "y", "A @ x", "D @ y", "B @ w", "x*y", "softmax(x)", "layernorm(y)", "sum(B, axis=1)",
    "T @ w", "max(B, axis=1)", "a*x", "x + b", "x - mean(x)", "where(x > y, x, y)", "maximum(x, y)",
    "H @ x", "O @ y", "inv(A) @ x",
    "diag(A)", "(x == y)*x", "x[i]*sum[j](A[i,j]*(j <= i))", "logsumexp(B, axis=1)", "log_softmax(y)",
    "prod(T*exp(B), axis=1)", "log(T @ exp(w))", "where(exp(x) < exp(y), x, y)", "x[i]*sum[k=0:m](a**k)", "a**m*y",
    "exp(x)/sum(exp(x))", "x/norm(x)", "prod(B, axis=1)", "2 - x*x", "1 - x", "B @ w - 3", "exp(x) - exp(y)",
)  # fmt: skip
PAIRS = ("({}) + ({})", "({}) - ({})", "({})*({})", "({})/({})", "outer({}, {}) @ y", "maximum({}, {})")


def random_vector(rng: random.Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.25:
        return rng.choice(VECTORS)
    if rng.random() < 0.5:
        return rng.choice(FUNCTIONS).format(random_vector(rng, depth - 1))
    return rng.choice(PAIRS).format(random_vector(rng, depth - 1), random_vector(rng, depth - 1))


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raise TimeoutError after some time; a normal form without names may take long to evaluate."""

    def stop(signum: int, frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def keeps_its_value(system: System, output: str) -> bool | None:
    """Whether the normal form of an array has the array's value at random points; None where there is none."""
    array = system.arrays[output]
    outs = out_letters(array.rank)
    axes = array.axes(outs)
    normal = Normal(system, budget=1000)
    try:
        form = expr_of(normal.of(Access(output, *outs), {letter: (lo, hi) for letter, lo, hi in axes}))
        both = system.extended([Array("form", array.shape)], [whole(Array("form", array.shape), form)], ("form",))
        with at_most(2):
            found = compared(Pair(both, output, "form"), kinds=("small", "positive", "wide"))
    except (NoNormalForm, RecursionError, TimeoutError, KeyError):
        return None
    return found.differs is None if found.compared else None


@pytest.mark.parametrize("seed", range(4))
def test_a_normal_form_keeps_the_value(seed: int) -> None:
    rng = random.Random(seed)
    done = 0
    while done < 20:
        text = random_vector(rng, 3)
        try:
            system = build(text if rng.random() < 0.5 else f"sum({text})", SHAPES)
            (output,) = system.outputs
            if not system.arrays[output].shape and rng.random() < 0.5:
                system, output = adjoint(system, ["x"]), "x_bar"
        except GradproofError:
            continue
        kept = keeps_its_value(system, output)
        assert kept is not False, text
        done += 1
