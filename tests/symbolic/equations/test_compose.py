"""From system to system: axes, composition, parts with names; each against the system that states the same at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sympy import Integer, sqrt

from gradproof.symbolic.equations.axes import (
    from_the_end,
    laid_out,
    over_time,
    split_axis,
    with_axis,
    with_own_size,
    with_sizes,
    without_axis,
)
from gradproof.symbolic.equations.compose import (
    abbreviated,
    added,
    applied,
    biased,
    compose,
    dropped,
    fixed,
    inlined,
    masked,
    part,
    product,
    residual,
    same,
    split_off,
    times,
)
from gradproof.symbolic.equations.expr import Size
from gradproof.symbolic.equations.functions import sigma
from gradproof.symbolic.equations.system import System
from gradproof.symbolic.errors import GradproofError
from gradproof.symbolic.language.reader import build

LINEAR = build("y = W @ x", {"W": "n,m", "x": "m"})
STEP = build("u = x @ W + h_0 @ U + b; h = tanh(u)", {"x": "p", "W": "p,d", "h_0": "d", "U": "d,d", "b": "d"})
SCORES = build("S = Q @ K.T; A = softmax(S)", {"Q": "n,d", "K": "m,d"})
PAIR = {"x": "n", "y": "n"}

# what a function makes, and the same stated at once: text, shapes
ROWS: dict[str, tuple[Callable[[], System], str, dict[str, str]]] = {
    "a batch": (lambda: with_axis(LINEAR, "B", {"x": 0}), "y[b,i] = sum[j](W[i,j]*x[b,j])", {"W": "n,m", "x": "B,m"}),
    "a batch of weights, last": (
        lambda: with_axis(LINEAR, "B", {"W": 2}, 1),
        "y[i,b] = sum[j](W[i,j,b]*x[j])",
        {"W": "n,m,B", "x": "m"},
    ),
    "another layout": (
        lambda: laid_out(build("S = Q @ K.T; A = tanh(S)", {"Q": "n,d", "K": "m,d"}), {"Q": (1, 0), "S": (1, 0)}),
        "S[j,i] = sum[l](Q[l,i]*K[j,l]); A[i,j] = tanh(S[j,i])",
        {"Q": "d,n", "K": "m,d"},
    ),
    "other sizes": (lambda: with_sizes(LINEAR, {"n": "p", "m": "p"}), "y = W @ x", {"W": "p,p", "x": "p"}),
    "a size of its own": (
        lambda: with_own_size(build("A @ x", {"A": "d,d", "x": "d"}), "u", {"A": 1, "x": 0}),
        "A @ x",
        {"A": "d,u", "x": "u"},
    ),
    "pairs": (
        lambda: split_axis(build("x * d", {"x": "d"}), "d", 2, "p"),
        "y[c,i] = 2*p*x[c,i]",
        {"x": "2,p"},
    ),
    "one behind the other": (
        lambda: compose(LINEAR, build("z = tanh(y)", {"y": "n"})),
        "y = W @ x; z = tanh(y)",
        {"W": "n,m", "x": "m"},
    ),
    "one array for two": (lambda: same(build("x @ y", PAIR), {"y": "x"}), "sum(x**2)", {"x": "n"}),
    "a part": (lambda: part(STEP, ("h",), given=("u",)), "h = tanh(u)", {"u": "d"}),
    "a mask": (
        lambda: masked(build("e = 2*x", {"x": "n"}), "e", "M", (0,), "m"),
        "e = 2*x; m = where(M == 1, e, -inf)",
        {"x": "n", "M": "n:index=2"},
    ),
    "dropout": (lambda: dropped(LINEAR, "y", "D"), "y = (W @ x) * D", {"W": "n,m", "x": "m", "D": "n"}),
    "a residual connection": (lambda: residual(LINEAR, "y", "r"), "y = r + W @ x", {"W": "n,m", "x": "m", "r": "n"}),
    "a bias": (
        lambda: biased(build("Y = X @ W", {"X": "n,m", "W": "m,k"}), "Y", "b", (1,)),
        "Y = X @ W + b",
        {"X": "n,m", "W": "m,k", "b": "k"},
    ),
    "a product more": (
        lambda: added(LINEAR, "y", build("V @ c", {"V": "n,k", "c": "k"})),
        "y = W @ x + V @ c",
        {"W": "n,m", "x": "m", "V": "n,k", "c": "k"},
    ),
    "a factor": (lambda: times(LINEAR, "y", sqrt(Size("m"))), "y = sqrt(m) * (W @ x)", {"W": "n,m", "x": "m"}),
    "a number": (lambda: fixed(build("x + a", {"x": "n", "a": ""}), {"a": Integer(2)}), "x + 2", {"x": "n"}),
    "without a name": (
        lambda: inlined(build("z = 2*x; z**2 + y", PAIR), "z"),
        "(2*x)**2 + y",
        PAIR,
    ),
    "a product with a name": (
        lambda: product(build("sum[i](x[i]*y[i]*z[i])", {**PAIR, "z": "n"}), "p", ("x", "y")),
        "p = x*y; sum[i](p[i]*z[i])",
        {**PAIR, "z": "n"},
    ),
    "what does not change from step to step": (
        lambda: split_off(STEP, "u", "v", free_of=["h_0"]),
        "v = x @ W + b; u = v + h_0 @ U; h = tanh(u)",
        {"x": "p", "W": "p,d", "h_0": "d", "U": "d,d", "b": "d"},
    ),
    "a function": (
        lambda: applied(build("sigma(x + y)", PAIR), sigma, build("silu(x)", {"x": ""})),
        "silu(x + y)",
        PAIR,
    ),
    "numbers with names": (
        lambda: abbreviated(build("x*(1 - a)", {"x": "n", "a": ""}), build("r = 1 - a", {"a": ""})),
        "x*r",
        {"x": "n", "r": ""},
    ),
    "all steps": (
        lambda: over_time(STEP, "T", {"h_0": "h"}, {"x": 0}),
        "h[0,k] = h_0[k]; u[t,k] = sum[l](x[t,l]*W[l,k]) + sum[l](h[t,l]*U[l,k]) + b[k]; h[t+1,k] = tanh(u[t,k])",
        {"x": "T,p", "W": "p,d", "h_0": "d", "U": "d,d", "b": "d"},
    ),
    "from the end": (
        lambda: from_the_end(build("y[t] = 2*x[t]", {"x": "T"}), {"x": 0}),
        "y[t] = 2*x[T-1-t]",
        {"x": "T"},
    ),
}


def stated(system: System) -> tuple[object, ...]:
    """What a system says, whatever the order of its equations and the names of unnamed results and of helpers."""
    last = {system.outputs[0]: "RESULT"}
    system = inlined(system, *[name for name in system.defined if name in system.hidden]).renamed(last)
    shapes = {name: (array.shape, array.below) for name, array in system.arrays.items()}
    return shapes, {(e.name, e.place, e.axes, e.body) for e in system.equations}


@pytest.mark.parametrize("row", ROWS)
def test_the_same_as_stated_at_once(row: str) -> None:
    make, text, shapes = ROWS[row]
    found, expected = make(), build(text, shapes)
    found.validate()
    assert stated(found) == stated(expected)


@pytest.mark.parametrize("name", ("a batch", "dropout", "a factor"))
def test_the_system_that_is_given_stays(name: str) -> None:
    before = (LINEAR.equations, dict(LINEAR.arrays))
    ROWS[name][0]()
    assert (LINEAR.equations, dict(LINEAR.arrays)) == before


def test_a_softmax_stays_one() -> None:
    """What an equation came from goes along: the argument of the softmax has the new axis and the mask."""
    batched = masked(with_axis(SCORES, "B", {"Q": 0, "K": 0}), "S", "M", (0, 1, 2), "Sm")
    (weights,) = batched.defined["A"]
    assert weights.origin is not None
    assert (str(weights.origin.argument), str(weights.origin.over)) == ("Sm[o0, o1, o2]", "o2")


FAULTS: dict[str, tuple[Callable[[], System], str]] = {
    "defined twice": (lambda: compose(LINEAR, build("y = 2*x", {"x": "m"})), "y is defined in both"),
    "other shapes": (lambda: same(build("A @ x", {"A": "n,m", "x": "m"}), {"A": "x"}), "different shapes"),
    "a taken name": (lambda: residual(LINEAR, "y", "W"), "name W is taken"),
    "a sum over the axis": (lambda: without_axis(LINEAR, "m"), "more than one place of the axis m"),
    "no plain letter": (lambda: split_axis(build("y[t] = x[d-1-t]", {"x": "d"}), "d", 2, "p"), "cannot be split"),
}


@pytest.mark.parametrize("row", FAULTS)
def test_what_cannot_be_done_is_an_error(row: str) -> None:
    make, message = FAULTS[row]
    with pytest.raises(GradproofError, match=message):
        make()
