"""Counts of parameters and operations against hand counts, torch's own numbers, and runs that count as they compute."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from typing import ClassVar

import pytest
from sympy import Add, Mul

from gradproof.symbolic.counting import cost, leading, parameters, shapes, size_text, size_value, summed
from gradproof.symbolic.derive import derive
from gradproof.symbolic.equations.expr import Size
from gradproof.symbolic.errors import ExpressionError
from gradproof.symbolic.language.reader import build

ATTENTION = ("softmax(Q @ K.T / sqrt(d_k)) @ V", {"Q": "n,d_k", "K": "n,d_k", "V": "n,d_v"})
BLOCK = (
    "Q = X @ W_Q; K = X @ W_K; V = X @ W_V; softmax(Q @ K.T / sqrt(d)) @ V @ W_O",
    {"X": "n,d", "W_Q": "d,d", "W_K": "d,d", "W_V": "d,d", "W_O": "d,d"},
)
FFN = (
    "relu(X @ W_1 + b_1) @ W_2 + b_2",
    {"X": "n,d_model", "W_1": "d_model,d_ff", "b_1": "d_ff", "W_2": "d_ff,d_model", "b_2": "d_model"},
)
LAYERNORM = ("layernorm(X) * g + b", {"X": "n,d", "g": "d", "b": "d"})
RNN = (
    "h[0,k] = h0[k]; h[t+1,k] = tanh(sum[l](W[k,l]*h[t,l]) + x[t,k]); sum(h)",
    {"h0": "d", "W": "d,d", "x": "T,d"},
)
CHAIN = ("einsum('ij,jk,kl->il', A, B, C)", {"A": "n,d", "B": "d,m", "C": "m,p"})

# expression, operations counted by hand, leading order
TOTALS = [
    (*ATTENTION, "2·n²·d_k + 2·n²·d_v + 4·n²", "O(n²·d_k + n²·d_v)"),
    (*BLOCK, "4·n²·d + 8·d²·n + 4·n²", "O(d²·n + n²·d)"),
    (*FFN, "4·n·d_ff·d_model + 2·n·d_ff + n·d_model", "O(n·d_ff·d_model)"),
    (*LAYERNORM, "7·d·n + 4·n", "O(d·n)"),
    (*RNN, "2·d²·T + 3·T·d + d", "O(d²·T)"),
    (*CHAIN, "2·d·m·n + 2·m·n·p", "O(d·m·n + m·n·p)"),
    ("A @ B @ C", {"A": "n,d", "B": "d,m", "C": "m,p"}, "2·d·m·n + 2·m·n·p", "O(d·m·n + m·n·p)"),
    ("x @ A @ x", {"A": "n,n", "x": "n"}, "2·n² + 2·n", "O(n²)"),
    ("E[w[t],k]", {"E": "V,d", "w": "T:index=V"}, "0", "O(1)"),
    (
        "v @ tanh(W_1 @ h + W_2 @ s)", {"v": "a", "W_1": "a,d", "W_2": "a,d", "h": "d", "s": "d"},
        "4·a·d + 4·a", "O(a·d)",
    ),
    ("X / (n * sqrt(d))", {"X": "n,d"}, "d·n", "O(d·n)"),
    ("sum[i,j](a[i]*b[j])", {"a": "n", "b": "m"}, "m + n + 1", "O(m + n)"),
    ("sum[i](sum[j=0:i+1](A[i,j]*x[j]))", {"A": "n,n", "x": "n"}, "n² + n", "O(n²)"),
    ("x**3 + 1/sqrt(x) - x", {"x": "n"}, "5·n", "O(n)"),
    ("max(X, axis=1)", {"X": "n,d"}, "d·n", "O(d·n)"),
    ("kron(A, B) @ x", {"A": "m,n", "B": "p,q", "x": "n*q"}, "2·m·n·q + 2·m·p·q", "O(m·n·q + m·p·q)"),
    ("sum(kron(A, B)*C)", {"A": "m,n", "B": "p,q", "C": "m*p,n*q"}, "2·m·n·p·q + 2·p·q", "O(m·n·p·q)"),
    ("cumsum(x)**2", {"x": "n"}, "2·n", "O(n)"),
    ("cumsum(cumsum(X, axis=0), axis=1)", {"X": "n,m"}, "2·m·n", "O(m·n)"),
    ("sum[i=0:n](sum[j=0:i+1](x[j])**2)", {"x": "n"}, "3·n", "O(n)"),
    ("tanh(X @ W) + tanh(X @ W)**2", {"X": "n,d", "W": "d,k"}, "2·d·k·n + 3·k·n", "O(d·k·n)"),
    ("H = X @ W; y[i,j] = sum[r](X[i,r]*W[r,j]); H*y", {"X": "n,d", "W": "d,k"}, "2·d·k·n + k·n", "O(d·k·n)"),
    ("onehot(t, k).T @ X", {"t": "n:index=k", "X": "n,d"}, "d·n", "O(d·n)"),
    ("softmax(X) - onehot(t, k)", {"t": "n:index=k", "X": "n,k"}, "3·k·n + n", "O(k·n)"),
    ("logdet(S)", {"S": "n,n"}, "2·n³/3 − n²/2 + 11·n/6 − 1", "O(n³)"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "declared", "total", "order"), TOTALS)
def test_operations(text: str, declared: dict, total: str, order: str) -> None:
    found = cost(build(text, declared))
    assert (found.text, found.order) == (total, order)


# --- a counted run: the same formulas in plain loops, over numbers that count what is done to them


class Counted:
    """A number that counts every operation on it; a sum starts from 0."""

    done: ClassVar[Counter[str]] = Counter()

    def __init__(self, value: float) -> None:
        self.value = value

    def _with(self, kind: str, other: object, do: Callable[[float, float], float]) -> Counted:
        Counted.done[kind] += 1
        return Counted(do(self.value, other.value if isinstance(other, Counted) else float(other)))  # type: ignore[arg-type]

    def __add__(self, other: object) -> Counted:
        return self._with("additions", other, lambda a, b: a + b)

    def __sub__(self, other: object) -> Counted:
        return self._with("additions", other, lambda a, b: a - b)

    def __mul__(self, other: object) -> Counted:
        return self._with("multiplications", other, lambda a, b: a * b)

    def __truediv__(self, other: object) -> Counted:
        return self._with("multiplications", other, lambda a, b: a / b)

    def function(self, f: Callable[[float], float]) -> Counted:
        Counted.done["functions"] += 1
        return Counted(f(self.value))


def array(*shape: int) -> list:
    if not shape:
        return Counted(random.uniform(-1, 1))  # type: ignore[return-value]
    return [array(*shape[1:]) for _ in range(shape[0])]


def total(terms: list[Counted]) -> Counted:
    found = Counted(0)
    for term in terms:
        found = found + term
    return found


def matmul(a: list, b: list) -> list:
    return [[total([x * y for x, y in zip(row, column, strict=True)]) for column in zip(*b, strict=True)] for row in a]


def transposed(a: list) -> list:
    return [list(column) for column in zip(*a, strict=True)]


def run_attention(n: int, d_k: int, d_v: int) -> None:
    q, k, v = array(n, d_k), array(n, d_k), array(n, d_v)
    scores = [[x / math.sqrt(d_k) for x in row] for row in matmul(q, transposed(k))]
    weights = []
    for row in scores:
        powers = [x.function(math.exp) for x in row]
        z = total(powers)
        weights.append([x / z for x in powers])
    matmul(weights, v)


def run_block(n: int, d: int) -> None:
    x = array(n, d)
    q, k, v = (matmul(x, array(d, d)) for _ in range(3))
    scores = [[x / math.sqrt(d) for x in row] for row in matmul(q, transposed(k))]
    weights = []
    for row in scores:
        powers = [x.function(math.exp) for x in row]
        z = total(powers)
        weights.append([x / z for x in powers])
    matmul(matmul(weights, v), array(d, d))


def run_ffn(n: int, d_model: int, d_ff: int) -> None:
    x, w_1, b_1, w_2, b_2 = array(n, d_model), array(d_model, d_ff), array(d_ff), array(d_ff, d_model), array(d_model)
    inner = [[(x + b).function(lambda z: max(z, 0)) for x, b in zip(row, b_1, strict=True)] for row in matmul(x, w_1)]
    [[x + b for x, b in zip(row, b_2, strict=True)] for row in matmul(inner, w_2)]


def run_layernorm(n: int, d: int) -> None:
    gain, shift = array(d), array(d)
    for row in array(n, d):
        mean = total(row) / d
        centred = [x - mean for x in row]
        spread = (total([c * c for c in centred]) / d + 1e-5).function(math.sqrt)
        [c / spread * g + b for c, g, b in zip(centred, gain, shift, strict=True)]


def run_rnn(T: int, d: int) -> None:
    w, x, h = array(d, d), array(T, d), array(d)
    states = [h]
    for t in range(T):
        h = [
            (total([w[k][m] * h[m] for m in range(d)]) + x[t][k]).function(math.tanh)
            for k in range(d)
        ]  # fmt: skip
        states.append(h)
    total([value for state in states for value in state])


def run_chain(n: int, d: int, m: int, p: int) -> None:
    matmul(matmul(array(n, d), array(d, m)), array(m, p))


RUNS = [
    (ATTENTION, run_attention, {"n": 5, "d_k": 3, "d_v": 2}),
    (ATTENTION, run_attention, {"n": 2, "d_k": 7, "d_v": 4}),
    (BLOCK, run_block, {"n": 4, "d": 3}),
    (FFN, run_ffn, {"n": 3, "d_model": 2, "d_ff": 5}),
    (LAYERNORM, run_layernorm, {"n": 3, "d": 4}),
    (RNN, run_rnn, {"T": 4, "d": 3}),
    (CHAIN, run_chain, {"n": 3, "d": 2, "m": 4, "p": 5}),
]


@pytest.mark.parametrize(("formula", "run", "sizes"), RUNS, ids=[run.__name__ for _, run, _ in RUNS])
def test_counted_run(formula: tuple[str, dict], run: Callable[..., None], sizes: dict[str, int]) -> None:
    """Multiplications, additions and functions, each to the last one."""
    found = cost(build(*formula)).operations
    Counted.done.clear()
    run(**sizes)
    values = {Size(name): value for name, value in sizes.items()}
    for kind in ("multiplications", "additions", "functions"):
        assert getattr(found, kind).xreplace(values) == Counted.done[kind], kind


# --- contraction orders, parameters, memory


def test_contraction_order_depends_on_the_sizes() -> None:
    system = build(*CHAIN)
    left = cost(system, at={"n": 1, "d": 100, "m": 100, "p": 100})
    right = cost(system, at={"n": 100, "d": 100, "m": 100, "p": 1})
    assert left.operations.order == ("((A B) C)",)
    assert right.operations.order == ("((B C) A)",)
    assert right.text == "2·d·m·p + 2·d·n·p"


MHA = (
    "Q[g,i,c] = sum[a](X[i,a]*W_Q[g,a,c]); K[g,i,c] = sum[a](X[i,a]*W_K[g,a,c]); V[g,i,c] = sum[a](X[i,a]*W_V[g,a,c]);"
    "A[g,i,j] = sum[c](Q[g,i,c]*K[g,j,c])/sqrt(d_k); P = softmax(A); Z[g,i,c] = sum[j](P[g,i,j]*V[g,j,c]);"
    "sum[g,c](Z[g,i,c]*W_O[g,c,a])",
    {"X": "n,d_model", "W_Q": "h,d_model,d_k", "W_K": "h,d_model,d_k", "W_V": "h,d_model,d_k", "W_O": "h,d_k,d_model"},
)
WEIGHTS = ["W_Q", "W_K", "W_V", "W_O"]
HEADS = {"d_k": "d_model/h"}


def test_heads_cost_no_parameters() -> None:
    """4 d_model² for any number of heads, and the operations differ only in the softmax."""
    system = build(*MHA)
    assert size_text(parameters(system, WEIGHTS, HEADS)) == "4·d_model²"
    many, one = cost(system).at(HEADS), cost(system).at({"h": 1, "d_k": "d_model"})
    assert size_text(many) == "4·n²·d_model + 4·n²·h + 8·d_model²·n"
    assert many.xreplace({Size("h"): 1}) == one


def test_parameters_against_torch() -> None:
    torch = pytest.importorskip("torch")

    def numel(module: object) -> int:
        return sum(p.numel() for p in module.parameters())  # type: ignore[attr-defined]

    at: dict = {"d_model": 48, "h": 6}
    plain = numel(torch.nn.MultiheadAttention(48, 6, bias=False))
    assert parameters(build(*MHA), WEIGHTS, {**HEADS, **at}) == plain == 4 * 48**2
    assert numel(torch.nn.MultiheadAttention(48, 6)) == plain + 4 * 48
    layers = torch.nn.Sequential(torch.nn.Linear(48, 192), torch.nn.ReLU(), torch.nn.Linear(192, 48))
    ffn = build(*FFN)
    wide = {"d_ff": "4*d_model"}
    assert parameters(ffn, ["W_1", "b_1", "W_2", "b_2"], {**wide, **at}) == numel(layers)
    assert size_text(parameters(ffn, ["W_1", "b_1", "W_2", "b_2"], wide)) == "8·d_model² + 5·d_model"
    assert size_text(parameters(ffn, ["W_1", "W_2"], wide)) == "8·d_model²"


def test_attention_is_the_bottleneck_only_for_long_inputs() -> None:
    """8nd² for the projections against 4n²d: equal at n = 2d."""
    found = cost(build(*BLOCK))
    rows = {row.name: row.flops for row in found.rows}
    n, d = Size("n"), Size("d")
    projections = rows["Q"] + rows["K"] + rows["V"] + 2 * n * d**2
    quadratic = found.flops - projections - 4 * n**2
    assert (projections, quadratic) == (8 * n * d**2, 4 * n**2 * d)
    assert (projections - quadratic).xreplace({n: 2 * d}).expand() == 0


def test_cached_keys_and_values() -> None:
    """One step with a cache costs O(t d); without it, every step recomputes attention over its prefix."""
    step = cost(build("softmax(K @ q / sqrt(d)) @ V", {"q": "d", "K": "t,d", "V": "t,d"}))
    assert (step.text, step.order) == ("4·d·t + 4·t", "O(d·t)")
    whole = cost(build("softmax(Q @ K.T / sqrt(d)) @ V", {"Q": "t,d", "K": "t,d", "V": "t,d"}))
    assert leading(summed(step.flops, "t", 1, "T")) == Size("T") ** 2 * Size("d")
    assert leading(summed(whole.flops, "t", 1, "T")) == Size("T") ** 3 * Size("d")


KEPT = [
    (*LAYERNORM, {"g", "s", "xhat"}),
    (*ATTENTION, {"Q", "K", "V", "P"}),
    (*RNN, {"W", "h"}),
    ("H = tanh(X @ W); H @ V", {"X": "n,d", "W": "d,k", "V": "k,m"}, {"X", "W", "V", "H"}),
    ("x + y", {"x": "n", "y": "n"}, set()),
]


@pytest.mark.parametrize(("text", "declared", "kept"), KEPT)
def test_what_backward_keeps(text: str, declared: dict, kept: set[str]) -> None:
    assert set(cost(build(text, declared)).kept) == kept


def test_memory() -> None:
    found = cost(build("X @ W", {"X": "n,d", "W": "d,k"}), itemsize=4)
    assert size_text(found.bytes) == "4·d·k + 4·d·n + 4·k·n"
    assert size_text(found.keeps) == "4·d·k + 4·d·n"
    lookup = cost(build("E[w[t],k]", {"E": "V,d", "w": "T:index=V"}), itemsize=4)
    assert size_text(lookup.bytes) == "8·T·d + 4·T"  # the rows that are read, not the whole table


# a derivation, operations with derivatives counted by hand, bytes of entries that the value reads and writes
SWIGLU = {"X": "n,d", "W": "d,f", "V": "d,f", "O": "f,d", "G": "n,d"}
DERIVED = [
    ("sum(((silu(X @ W)*(X @ V)) @ O)*G)", SWIGLU, "18·d·f·n"),
    ("H = X @ W; K = X @ V; S = silu(H)*K; sum((S @ O)*G)", SWIGLU, "18·d·f·n"),
    ("sum(tanh(tanh(X @ W) @ V)*G)", {"X": "n,d", "W": "d,f", "V": "f,d", "G": "n,d"}, "12·d·f·n"),
    ("sum((X @ W - Y)**2)", {"X": "n,d", "W": "d,k", "Y": "n,k"}, "6·d·k·n"),
    ("sum(cumsum(x)**2)", {"x": "n"}, "5·n"),
    (
        "y[i,j] = sum[a,b](K[a,b]*x[i+a,j+b]); sum(tanh(y))",
        {"K": "p,q", "x": "n+p-1,m+q-1"},
        "6·m·n·p·q",
    ),
    ("sum(x[t]*g)", {"x": "n", "t": "m:index=n", "g": "m"}, "3·m"),
    ("sum((kron(A, B) @ x)*g)", {"A": "m,n", "B": "p,q", "x": "n*q", "g": "m*p"}, "6·m·n·q + 6·m·p·q"),
]


@pytest.mark.parametrize(("text", "declared", "wanted"), DERIVED)
def test_operations_with_derivatives(text: str, declared: dict, wanted: str) -> None:
    """The highest terms of the count of the value and all gradients: what they share is computed once."""
    found = derive(text, declared)
    total = cost(found.system.needed([found.output, *(e.name for e in found.results)]), None, ()).flops
    degree = {
        term: sum(f.as_base_exp()[1] for f in Mul.make_args(term.as_coeff_Mul()[1])) for term in Add.make_args(total)
    }
    highest = Add(*(term for term, own in degree.items() if own == max(degree.values())))
    assert size_text(highest) == wanted


GATHERS = [
    ("x[t]", {"x": "n", "t": "m:index=n"}, "24·m"),
    ("y[i,j] = x[i,t[i,j]]; y", {"x": "n,m", "t": "n,p:index=m"}, "24·n·p"),
    ("y[i] = x[i,t[i]]; y", {"x": "n,m", "t": "n:index=m"}, "24·n"),
    ("X[t]", {"X": "n,d", "t": "m:index=n"}, "16·d·m + 8·m"),
]


@pytest.mark.parametrize(("text", "declared", "wanted"), GATHERS)
def test_a_gather_reads_what_it_returns(text: str, declared: dict, wanted: str) -> None:
    assert size_text(cost(build(text, declared)).bytes) == wanted


def test_what_the_backward_of_a_determinant_keeps() -> None:
    assert cost(build("logdet(S)", {"S": "n,n"})).kept == {"S": Size("n") ** 2}


def test_shapes() -> None:
    assert shapes(build(*ATTENTION)) == {"Q": "n×d_k", "K": "n×d_k", "V": "n×d_v", "S": "n×n", "P": "n×n", "F": "n×d_v"}


@pytest.mark.parametrize("text", ["d//2", "f(d)", "d =", "x = d", "a; b", "d_model/'h'"])
def test_sizes_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        size_value(text)


def test_unknown_parameter() -> None:
    with pytest.raises(ExpressionError, match="W_X is no input"):
        parameters(build(*MHA), ["W_X"])
