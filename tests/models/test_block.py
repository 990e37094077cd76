"""Blocks: every derivation step checked, code shared between layers, what the backward pass keeps."""

from __future__ import annotations

import numpy as np
import pytest

from gradproof.models.nets import recurrent_equations
from gradproof.models.nets import transformer_equations as equations
from gradproof.models.nets.block import Block, derived, differentiated, stated
from gradproof.models.nets.transformer import Transformer, TransformerConfig
from gradproof.symbolic.equations.roles import Kind

STATED = {
    "layernorm": equations.norm("layernorm"),
    "rmsnorm": equations.norm("rmsnorm"),
    "embedding": equations.embedding(True, True, True),
    "gelu": equations.feed_forward("gelu", True),
    "swiglu": equations.feed_forward("swiglu", False),
    "loss": equations.loss(True, True, True),
    "rnn": recurrent_equations.layer("rnn"),
    "gru": recurrent_equations.layer("gru", encoder=True, tokens=True),
    "readout": recurrent_equations.attention("additive", False),
}


@pytest.mark.parametrize("name", STATED)
def test_every_step_of_a_blocks_derivation_is_checked(name: str) -> None:
    """`derived` with checks finds the same equations; a step that does not hold would raise."""
    stated = STATED[name]
    plain, checked = derived(stated), derived(stated, checked=True)
    for variable in stated.variables:
        assert checked.defined[checked.adjoint_of(variable)] == plain.defined[plain.adjoint_of(variable)]


def test_a_relu_keeps_its_result_alone() -> None:
    kept = differentiated(equations.feed_forward("relu", False)).kept
    assert "C" in kept
    assert "F" not in kept


def test_an_outer_product_is_not_made() -> None:
    """The adjoint of F is v_k e_tj: both sums over it are products with v and e."""
    behind = differentiated(recurrent_equations.attention("additive", False)).systems[1]
    assert behind.of(Kind.ADJOINT, "e")
    assert not behind.of(Kind.ADJOINT, "F")


def test_layers_share_their_code() -> None:
    """Twelve layers are derived and compiled as often as one."""
    shallow, deep = (
        Transformer(TransformerConfig("decoder", 7, width=8, heads=2, inner=8, layers=layers)) for layers in (1, 12)
    )
    shallow.prepare()
    before = differentiated.cache_info().misses
    deep.prepare()
    assert differentiated.cache_info().misses == before


def test_the_backward_pass_keeps_weights_instead_of_scores() -> None:
    kept = differentiated(equations.attention(False, True, False, False)).kept
    assert {"A", "Q", "K", "V", "H"} <= set(kept)
    assert {"S", "Sm", "E", "Z"}.isdisjoint(kept)


def test_outputs_that_feed_each_other_get_both_gradients() -> None:
    """y is an output and makes z, another one: both cotangents count."""
    block = Block(stated("chain", "y = x * a; z = y * y", {"x": "n", "a": "n"}, ("y", "z")))
    x, a = np.array([1.0, 2.0]), np.array([3.0, 5.0])
    outputs, kept = block.forward({"x": x, "a": a})
    found = block.backward({"y": np.ones(2), "z": np.full(2, 10.0)}, kept)
    assert outputs["z"].tolist() == [9.0, 100.0]
    assert np.allclose(found["x"], (1 + 20 * x * a) * a)


def test_an_input_that_an_output_does_not_depend_on_gets_zeros() -> None:
    block = Block(stated("first", "y = 2 * x + 0 * v", {"x": "n", "v": "n"}, ("y",)))
    _, kept = block.forward({"x": np.ones(2), "v": np.ones(2)})
    assert block.backward({"y": np.ones(2)}, kept)["v"].tolist() == [0, 0]
