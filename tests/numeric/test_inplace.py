"""Code that works in place gives the same values, and leaves its arguments alone unless it may overwrite them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from gradproof.models.nets.block import Equations, cotangent, derived, stated
from gradproof.models.nets.recurrent_equations import attention as readout
from gradproof.models.nets.recurrent_equations import layer
from gradproof.models.nets.transformer_equations import attention, embedding, feed_forward, loss, norm
from gradproof.numeric.compile import compile_numpy
from gradproof.numeric.emitters.numpy_emitter import ADD_ROWS
from gradproof.symbolic.equations.system import Array
from gradproof.symbolic.language.reader import build

BLOCKS = {
    "attention": attention(False, True, False, False),
    "rotary": attention(False, False, True, True),
    "cross": attention(True, True, False, True),
    "layernorm": norm("layernorm"),
    "rmsnorm": norm("rmsnorm"),
    "relu": feed_forward("relu", False),
    "gelu": feed_forward("gelu", True),
    "swiglu": feed_forward("swiglu", False),
    "embedding": embedding(True, True, False),
    "loss": loss(False, True, False),
    "smoothed": loss(True, False, True),
    "positions first": loss(False, True, True, turned=True),
    "rnn": layer("rnn", encoder=True),
    "gru": layer("gru", encoder=True, reverse=True),
    "lstm": layer("lstm", context=True),
    "masked lstm": layer("lstm", encoder=True),
    "tokens": layer("gru", encoder=True, reverse=True, tokens=True),
    "dot": readout("dot", False),
    "additive": readout("additive", True),
    "turned places": stated(
        "turned", "L = sum[b,i](logsumexp(l[i,b,:]) - l[i,b,y[b,i]])", {"l": "T,B,N", "y": "B,T:index=N"}, ("L",)
    ),
    "a part of an axis": stated(
        "part",
        "K[b,j,a] = X[b,j,a]**2; L = K[:, :F]; N = K[:, F:]; "
        "u[b,a,i] = sum[j](A[b,a,i,j]*L[b,j,a]); v[b,a,i] = sum[j](C[b,a,i,j]*N[b,j,a])",
        {"X": "B,F+G,h", "A": "B,h,T,F", "C": "B,h,T,G"},
        ("u", "v"),
    ),
}
LENGTH = {"B": 3, "T": 5, "Ts": 4, "S": 4, "d": 6, "h": 2, "d_k": 3, "d_v": 3, "d_p": 2, "m": 7, "N": 6, "2": 2}
LENGTH |= {"F": 4, "G": 2}


def arrays(inputs: Iterable[Array], seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    found = {}
    for array in inputs:
        size = tuple(LENGTH.get(str(length), 6) for length in array.shape)
        high = 0 if array.below is None else LENGTH[str(array.below)]
        found[array.name] = rng.integers(0, high, size) if high else rng.standard_normal(size)
    return found


@pytest.mark.parametrize("name", BLOCKS)
def test_in_place_code_equals_plain_code(name: str) -> None:
    block: Equations = BLOCKS[name]
    whole = derived(block)
    wanted = [*block.outputs, *map(whole.adjoint_of, block.variables)]
    given = arrays(whole.arrays[n] for n in (*block.system.inputs, *map(cotangent, block.outputs)))
    plain, quick = (compile_numpy(whole, wanted, reuse=reuse) for reuse in (False, True))
    given = {n: v for n, v in given.items() if n in plain.arguments.names}
    before = {n: np.copy(v) for n, v in given.items()}
    expected, found = plain(**given), quick(**given)
    for n in wanted:
        assert np.allclose(found[n], expected[n], rtol=1e-11, atol=1e-13), n
    assert all(np.array_equal(before[n], given[n]) for n in given)
    assert any(sign in quick.source for sign in ("out=", "+=", "*="))


def test_arguments_are_overwritten_only_where_allowed() -> None:
    system = build("c = beta*a + b; d = c*2", {"a": "n", "b": "n", "beta": ""})
    a, b = np.ones(4), np.arange(4.0)
    quick = compile_numpy(system, ["c", "d"], overwrite=("a",))
    result = quick.function(a=a, b=b, beta=3.0)
    assert result["c"] is a
    assert a.tolist() == [3.0, 4.0, 5.0, 6.0]
    assert b.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert result["d"].tolist() == [6.0, 8.0, 10.0, 12.0]


def test_a_negative_multiple_of_an_array_that_is_done_with_keeps_its_sign() -> None:
    quick = compile_numpy(build("c = exp(a); d = -2*c", {"a": "n"}), ["d"], reuse=True)
    assert "out=c" in quick.source
    assert quick(a=np.zeros(2))["d"].tolist() == [-2.0, -2.0]


@pytest.mark.parametrize("size", [5, 9000])
def test_rows_are_added_like_numpy_does(size: int) -> None:
    namespace = {"np": np}
    exec(ADD_ROWS, namespace)
    rng = np.random.default_rng(0)
    places, values = rng.integers(-size, size, (3, 40)), rng.standard_normal((3, 40, 2, 3))
    expected, found = np.zeros((size, 2, 3)), np.zeros((size, 2, 3))
    np.add.at(expected, places, values)
    namespace["add_rows"](found, places, values)  # type: ignore[operator]
    assert np.allclose(found, expected, rtol=1e-12, atol=1e-13)
    namespace["add_rows"](found, places[:0], values[:0])  # type: ignore[operator]
    with pytest.raises(IndexError):
        namespace["add_rows"](found, np.array([size]), values[0, :1])  # type: ignore[operator]
