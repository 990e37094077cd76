"""The models' blocks are the catalogue's entries: what a block computes for one sample is what the entry states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradproof.models.nets import recurrent_equations as recurrent
from gradproof.models.nets import transformer_equations as blocks
from gradproof.models.nets.block import Block, Equations
from gradproof.models.nets.entries import entry
from gradproof.numeric.compile import compile_numpy
from gradproof.symbolic.catalogue import known
from gradproof.symbolic.equations.axes import laid_out, with_axis, with_own_size, with_sizes, without_axis
from gradproof.symbolic.equations.compose import part

Array = np.ndarray[Any, Any]
T, S, D, H, R, P, N, Q = 3, 4, 6, 2, 3, 2, 5, 4


def drawn(seed: int, **shapes: tuple[int, ...]) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(shape) for name, shape in shapes.items()}


def documented(identifier: str, output: str, **arrays: Any) -> Array:
    """What the entry's own equations give."""
    code = compile_numpy(entry(identifier), [output])
    return np.asarray(code(**{name: np.asarray(arrays[name]) for name in code.arguments.names})[output])


def block(stated: Equations, **arrays: Any) -> dict[str, Array]:
    """What the block gives for a batch of one; arrays are given in the block's own layout."""
    return Block(stated).evaluate({name: np.asarray(arrays[name]) for name in stated.system.inputs})


def same(found: Any, expected: Any) -> None:
    assert np.allclose(found, expected, rtol=1e-12, atol=1e-13)
    assert float(np.abs(expected).max()) > 0.01


def test_layernorm() -> None:
    a = drawn(0, x=(D,), gamma=(D,), beta=(D,))
    found = block(blocks.norm("layernorm"), x=a["x"][None, None], g=a["gamma"], c=a["beta"])["y"]
    same(found[0, 0], documented("layernorm.forward", "y", epsilon=1e-5, **a))


def test_embedding() -> None:
    a, w = drawn(1, E=(N, D), P=(T, D)), np.array([4, 0, 4])
    found = block(blocks.embedding(True, False, False), w=w[None], E=a["E"], p=a["P"])["x"]
    same(found[0], documented("embedding.position_sum", "h", w=w, **a))


def heads() -> dict[str, Array]:
    return drawn(2, X=(T, D), Y=(S, D), W_Q=(H, D, R), W_K=(H, D, R), W_V=(H, D, R), W_O=(H, R, D))


def test_attention() -> None:
    a = heads()
    laid = {name: a[name].swapaxes(0, 1) for name in ("W_Q", "W_K", "W_V")}
    data = {"X": a["X"][None], "Y": a["Y"][None], "X0": np.zeros((1, T, D)), "M": np.ones((1, T, S), int)}
    found = block(blocks.attention(True, False, False, False), **data, **laid, W_O=a["W_O"])
    same(found["R"][0], documented("mha.output", "O", **a))
    same(found["A"][0], documented("mha.output", "A", **a))


def test_rotation_in_pairs_is_the_rotation_matrix() -> None:
    """A pair (c, p) of a turned key is the pair 2p + c of R_t k."""
    a = drawn(3, X=(T, D), W_K=(D, 1, 2, P), W_V=(D, 1, R), omega=(P,), pos=(T,))
    angle = a["pos"][:, None] * a["omega"]
    tables = {"C": np.cos(angle), "Z": np.stack([-np.sin(angle), np.sin(angle)], axis=1)}
    given = {"X": a["X"][None], "W_K": a["W_K"], "W_V": a["W_V"], **tables}
    found = block(blocks.keys_values(False, True), **given)["Kr"][0, :, 0]
    keys = np.einsum("td,dcp->tpc", a["X"], a["W_K"][:, 0]).reshape(T, 2 * P)
    expected = documented("rope.rotation", "y", q=keys, pos=a["pos"], omega=a["omega"])
    same(found.swapaxes(1, 2).reshape(T, 2 * P), expected)


@pytest.mark.parametrize("name", ("relu", "swiglu"))
def test_feed_forward(name: str) -> None:
    a = drawn(4, X=(T, D), W_1=(D, N), b_1=(N,), W_2=(N, D), b_2=(D,), W=(D, N), V=(D, N), U=(N, D))
    found = block(blocks.feed_forward(name, False), **{**a, "X": a["X"][None], "X0": np.zeros((1, T, D))})["Y"][0]
    if name == "swiglu":
        same(found, documented("ffn.swiglu", "Y", beta=1.0, **a))
    else:  # the entry ffn.relu states one position as a column
        column = {"W_1": a["W_1"].T, "b_1": a["b_1"], "W_2": a["W_2"].T, "b_2": a["b_2"]}
        same(found, [documented("ffn.relu", "y", x=x, **column) for x in a["X"]])


@pytest.mark.parametrize("turned", (False, True))
def test_output_and_loss(turned: bool) -> None:
    """lm.batch_loss is the loss for weights keep / B."""
    a = drawn(5, h=(2, T, D), U=(D, N), b=(N,))
    targets, keep = np.array([[0, 4, 2], [1, 1, 3]]), np.array([[1, 1, 0], [1, 1, 1]])
    logits = np.stack([documented("output.projection", "l", h=h, U=a["U"], b=a["b"]) for h in a["h"]])
    given = {"H": a["h"].swapaxes(0, 1) if turned else a["h"], "U": a["U"], "b_U": a["b"]}
    same(block(blocks.output(False, True, turned), **given)["l"], logits)
    found = block(blocks.loss(False, True, False, turned), y=targets, weight=keep / 2, **given)
    same(found["L"], documented("lm.batch_loss", "L", o=logits, w=targets, keep=keep))
    smooth = block(blocks.loss(False, True, True, turned), y=targets, weight=keep / 2, epsilon=0.1, **given)["L"]
    rows = [
        [documented("loss.label_smoothing", "L", l=logits[b, t], y=targets[b, t], epsilon=0.1) for t in range(T)]
        for b in range(2)
    ]
    same(smooth, (np.array(rows) * keep / 2).sum())


def test_tied_output() -> None:
    a, w = drawn(6, E=(N, D), W=(D, D)), np.array([4, 0, 1])
    states = documented("output.tied", "H", w=w, **a)
    same(block(blocks.output(True, False), H=states[None], E=a["E"])["l"][0], documented("output.tied", "l", w=w, **a))


@pytest.mark.parametrize("tokens", (False, True))
def test_recurrent_layer(tokens: bool) -> None:
    """With the context as first state, and read at every step, it is the decoder of seq2seq.decoder (σ = tanh)."""
    a = drawn(7, c=(1, D), W_s=(D, D), W_y=(D, P), W_c=(D, D), b_s=(D,), E=(N, P))
    w = np.array([[4, 0, 1]])
    given = {"h_0": a["c"], "ctx": a["c"], "W_hn": a["W_s"].T, "W_in": a["W_y"].T, "W_cn": a["W_c"].T, "b_in": a["b_s"]}
    given |= {"w": w, "E": a["E"]} if tokens else {"x": a["E"][w.T]}
    found = block(recurrent.layer("rnn", context=True, tokens=tokens), **given)["s"]
    same(found, documented("seq2seq.decoder", "s", w=w, **a)[1:])


@pytest.mark.parametrize("score", recurrent.SCORES)
def test_attention_of_a_decoder(score: str) -> None:
    """Score, weights, context and readout are the entries', for every state; W_c is made of two blocks."""
    a = drawn(8, s=(T, D), H=(D, S), W_1=(P, D), W_2=(P, D), v=(P,), W_c=(D, 2 * D))
    given = {"s": a["s"][:, None], "H": a["H"].T[:, None], "M": np.ones((1, S), int), "v": a["v"], "b_c": np.zeros(D)}
    given |= {"W_1": a["W_1"].T, "W_2": a["W_2"].T, "W_a": a["W_c"][:, :D].T, "W_s": a["W_c"][:, D:].T}
    found = block(recurrent.attention(score, False), **given)
    for t, state in enumerate(a["s"]):
        e = documented(recurrent.SCORES[score], "e", **{**a, "s": state})
        alpha = np.exp(e) / np.exp(e).sum()
        same(found["alpha"][t, 0], alpha)
        context = documented("attention.context", "a", H=a["H"], alpha=alpha)
        same(found["R"][t, 0], documented("attention.readout", "y", a=context, s=state, W_c=a["W_c"]))


def made() -> list[Equations]:
    return [
        blocks.norm("layernorm"),
        blocks.embedding(True, True, True),
        blocks.attention(False, True, False, True),
        blocks.attention(False, True, True, True),
        blocks.attention(True, True, False, False),
        blocks.keys_values(True, True),
        blocks.cached_attention(True, False),
        blocks.feed_forward("gelu", True),
        blocks.feed_forward("swiglu", True),
        blocks.output(True, True, True),
        blocks.loss(True, True, True),
        recurrent.embedding(True),
        recurrent.layer("rnn", encoder=True),
        recurrent.layer("lstm", tokens=True),
        recurrent.joined(3),
        recurrent.attention("additive", True),
        recurrent.fed_decoder("rnn", "dot", 2, True),
    ]


@pytest.mark.parametrize("stated", made(), ids=lambda stated: stated.name)
def test_a_block_says_which_entries_it_is_made_of(stated: Equations) -> None:
    assert stated.entries
    assert all(known(identifier) for identifier in stated.entries)


@pytest.mark.parametrize("identifier", ("mha.output", "ffn.swiglu", "layernorm.forward", "lm.nll", "attention.context"))
def test_an_axis_more_and_one_less(identifier: str) -> None:
    """A batch of one sample is the sample: equation for equation, with what each came from."""
    system = entry(identifier)
    batched = with_axis(system, "batch", dict.fromkeys(system.inputs, 0))
    assert batched.equations != system.equations
    assert without_axis(batched, "batch").equations == system.equations


def test_all_heads_run_the_equations_of_one() -> None:
    """`attention.full` with keys of their own number and an axis for the heads is what `mha.output` states, and runs."""
    one = with_own_size(entry("attention.full"), "m", {"K": 0, "V": 0, "S": 1, "E": 1, "A": 1})
    every = with_axis(one, "h", {"Q": 0, "K": 0, "V": 0}).renamed({"O": "H"})
    assert every.equations == part(entry("mha.output"), ("H",), given=("Q", "K", "V")).equations
    turned = dict.fromkeys(("Q", "K", "V", "H"), (1, 0, 2))
    batched = with_axis(
        with_sizes(laid_out(every, turned), {"n": "T", "m": "Ts", "d_v": "d_k"}), "B", dict.fromkeys("QKV", 0)
    )
    run = {e.name: e for e in blocks.attention(True, True, False, False).system.equations}
    assert batched.defined["S"] == [run["S"]]
    assert batched.defined["H"] == [run["H"]]
