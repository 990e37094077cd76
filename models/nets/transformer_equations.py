"""The blocks of a Transformer, made from the catalogue's entries by axes, masks, dropout and residual connections.

Batch b, positions i and j, heads a. Parameters stand to the right of what they multiply (X W), as in the documents; a
mask entry 1 allows, 0 forbids. What no entry states is written here once: RMSNorm, a rotation in pairs, the mean loss.
"""

from __future__ import annotations

from functools import lru_cache

from sympy import Expr, Integer, Rational, sqrt

from gradproof.models.nets.block import Equations
from gradproof.models.nets.entries import entry
from gradproof.symbolic.equations.axes import laid_out, split_axis, with_axis, with_sizes
from gradproof.symbolic.equations.compose import (
    applied,
    behind,
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
from gradproof.symbolic.equations.expr import Access, Size
from gradproof.symbolic.equations.functions import sigma
from gradproof.symbolic.equations.system import Array, System
from gradproof.symbolic.language.reader import build

EPSILON = Rational(1, 100000)  # of both norms, torch's default
ACTIVATIONS = {"relu": "relu(x)", "gelu": "gelu(x)", "gelu_tanh": 'gelu(x, approximate="tanh")'}
RMSNORM = "y = rmsnorm(x, eps=epsilon) * g"  # LayerNorm without the mean; no document has it


def batched(system: System, inputs: tuple[str, ...], positions: tuple[str, ...] = ()) -> System:
    """The system for a batch: `inputs` get the first axis B, behind it `positions` get T."""
    return with_axis(with_axis(system, "T", dict.fromkeys(positions, 0)), "B", dict.fromkeys(inputs, 0))


@lru_cache
def norm(kind: str) -> Equations:
    """LayerNorm (gain g, bias c) or RMSNorm (gain g), over the features."""
    if kind == "layernorm":
        one = entry("layernorm.forward").renamed({"c": "c1"}).renamed({"gamma": "g", "beta": "c"})
        entries: tuple[str, ...] = ("layernorm.forward",)
    else:
        one, entries = build(RMSNORM, {"x": "d", "g": "d", "epsilon": ""}), ()
    system = batched(fixed(one, {"epsilon": EPSILON}), ("x",), ("x",))
    return Equations(kind, system, ("y",), entries=entries)


@lru_cache
def embedding(positions: bool, scaled: bool, dropout: bool) -> Equations:
    """x_i = E[w_i] (times √d in the 2017 paper) + p_i."""
    system = entry("embedding.position_sum")
    system = times(system, "X", sqrt(Size("d"))) if scaled else system
    system = inlined(system, "X") if positions else part(system, ("X",))
    system = with_sizes(system.renamed({"X": "x", "h": "x", "P": "p"}), {"n": "T"})
    system = batched(system, ("w",))
    system = dropped(system, "x", "D") if dropout else system
    masks = ("D",) if dropout else ()
    return Equations("embedding", system, ("x",), constant=("p",), masks=masks, entries=("embedding.position_sum",))


# ----------------------------------------------------------------------------------------------------------- attention


@lru_cache
def heads(bias: bool, rotary: bool, dropout: bool) -> System:
    """Multi-head attention with its residual connection: queries from X, keys and values from Y, T and Ts positions.

    M[b,i,j] = 1 where position i may see j. With `rotary` a head's width is (2, p): two numbers for each frequency.
    """
    system = entry("mha.output").renamed({"O": "R"})
    turned = dict.fromkeys(("W_Q", "W_K", "W_V", "Q", "K", "V", "H"), (1, 0, 2))
    system = with_sizes(laid_out(system, turned), {"n": "T", "m": "Ts"} | ({} if rotary else {"d_v": "d_k"}))
    if bias:
        for name in "QKV":
            system = biased(system, name, f"b_{name}", (1, 2))
        system = biased(system, "R", "b_O", (1,))
    if rotary:
        system = split_axis(system, "d_k", 2, "d_p")
        system = rotated(rotated(system, "Q", "C", "Z"), "K", "Ck", "Zk")
    system = masked(system, "S", "M", (1, 2), "Sm")
    system = dropped(system, "A", "DA", "Ad") if dropout else system
    system = with_axis(system, "B", dict.fromkeys(("X", "Y", "M", "DA"), 0))
    system = dropped(system, "R", "D") if dropout else system
    return residual(system, "R", "X0")


def rotated(system: System, name: str, cosine: str, sine: str) -> System:
    """Each pair (c = 0, 1) of queries or keys is turned by the angle position · frequency.

    The tables hold its cosine, and its sine: with − for c = 0. This is R_t q of `rope.rotation`, whose matrix is never
    made: a pair is one column (c, p) here, neighbours 2p + c there.
    """
    positions, _, _, pairs = system.arrays[name].shape
    tables = Array(cosine, (positions, pairs)), Array(sine, (positions, Integer(2), pairs))

    def make(body: Expr, place: tuple[Expr, ...]) -> Expr:
        i, a, c, p = place
        return body * Access(cosine, i, p) + Access(name, i, a, 1 - c, p) * Access(sine, i, c, p)

    return behind(system, name, f"{name}r", make, tables)


@lru_cache
def attention(cross: bool, bias: bool, rotary: bool, dropout: bool) -> Equations:
    """R = X0 + (concatenated heads) W_O; queries come from X, keys and values from X too, or from Y (`cross`)."""
    system = heads(bias, rotary, dropout)
    if not cross:
        system = same(with_sizes(system, {"Ts": "T"}), {"Y": "X"} | ({"Ck": "C", "Zk": "Z"} if rotary else {}))
    return Equations("attention", system, ("R",), ("A",), ("C", "Z"), ("D", "DA") if dropout else (), ENTRIES[rotary])


@lru_cache
def keys_values(bias: bool, rotary: bool) -> Equations:
    """The keys (turned, with `rotary`) and values of some positions, for the cache."""
    outputs = ("Kr", "V") if rotary else ("K", "V")
    system = part(heads(bias, rotary, False), outputs).renamed({"Y": "X", "Ck": "C", "Zk": "Z"})
    return Equations("keys_values", with_sizes(system, {"Ts": "T"}), outputs, (), ("C", "Z"), (), ENTRIES[rotary])


@lru_cache
def cached_attention(bias: bool, rotary: bool) -> Equations:
    """`attention` for some new positions, with all keys and values given."""
    system = part(heads(bias, rotary, False), ("R", "A"), given=("Kr" if rotary else "K", "V"))
    return Equations("cached_attention", system, ("R",), ("A",), ("C", "Z"), (), ENTRIES[rotary])


ENTRIES = {False: ("mha.output",), True: ("mha.output", "rope.rotation")}


# -------------------------------------------------------------------------------------------------------- feed-forward


@lru_cache
def feed_forward(activation: str, dropout: bool) -> Equations:
    """Y = X0 + σ(X W_1 + b_1) W_2 + b_2, or X0 + (swish(X W) ⊙ (X V)) U for SwiGLU."""
    if activation == "swiglu":
        system = fixed(entry("ffn.swiglu"), {"beta": Integer(1)}).renamed({"B": "F", "C": "P", "P": "s", "D": "G"})
        system = inlined(product(inlined(system, "s"), "C", ("P", "G")), "P")
        used = "ffn.swiglu"
    else:
        system = entry("ffn.backward").renamed({"B": "F"})
        system = applied(system, sigma, build(ACTIVATIONS[activation], {"x": ""}))
        used = "ffn.backward"
    system = batched(with_sizes(system, {"n": "T", "d_ff": "m"}), ("X",))
    system = dropped(dropped(system, "C", "DC", "Cd"), "Y", "D") if dropout else system
    masks = ("D", "DC") if dropout else ()
    return Equations("feed_forward", residual(system, "Y", "X0"), ("Y",), masks=masks, entries=(used,))


# -------------------------------------------------------------------------------------------------------------- output


@lru_cache
def logits(tied: bool, bias: bool, turned: bool) -> System:
    """l = H U + b_U, or H Eᵀ + b_U; `turned`: the positions are the first axis, the batch the second."""
    system = part(entry("output.tied"), ("l",), given=("H",)) if tied else entry("output.projection")
    system = system.renamed({"h": "H"})
    if not tied:
        system = system.renamed({"b": "b_U"}) if bias else fixed(system, {"b": Integer(0)})
    elif bias:
        system = biased(system, "l", "b_U", (1,))
    system = batched(with_sizes(system, {"n": "T"}), ("H",))
    return laid_out(system, {"H": (1, 0, 2), "l": (1, 0, 2)}) if turned else system


def output_entry(tied: bool) -> str:
    return "output.tied" if tied else "output.projection"


@lru_cache
def output(tied: bool, bias: bool, turned: bool = False) -> Equations:
    """The logits (B,T,N) and their log-probabilities."""
    system = logits(tied, bias, turned)
    logs = part(entry("lm.batch_loss"), ("F",)).renamed({"o": "l", "F": "lp"})
    if turned:
        back = build("l[b,i,v] = q[i,b,v]", {"q": "T,B,N"})
        system = compose(system.renamed({"l": "q"}), back)
    entries = (output_entry(tied), "lm.batch_loss")
    return Equations("output", compose(system, logs), ("l",), ("lp",), entries=entries)


# L = Σ weight · nll, where lm.batch_loss has keep/B for the weight; a smoothed loss is the mixture of two, as the entry
# loss.label_smoothing says of it: z − l_y, and the mean of z − l_v over all words v
MEAN = "L = sum[b,t](weight[b,t]*e[b,t])"
SMOOTHED = "u = z - mean(l); e = (1 - epsilon)*nll + epsilon*u"


@lru_cache
def loss(tied: bool, bias: bool, smoothing: bool, turned: bool = False) -> Equations:
    """L = Σ weight · (−Σ_v q_v log p_v) with q = (1 − ε)·[v = y] + ε/N; nll is −log p_y of every position (B,T).

    The weights say what is averaged: 1/(number of targets) at real positions, 0 at padding.
    """
    word = part(entry("lm.nll"), ("L",), given=("o",)).renamed({"o": "l", "w": "y", "L": "nll", "p": "P"})
    word = split_off(word, "nll", "z", free_of=("y",))
    if smoothing:
        word = compose(word, build(SMOOTHED, {"l": "N", "z": "", "nll": "", "epsilon": ""}))
    places = {"y": 0, "nll": 0, "u": 0, "e": 0}
    words = with_axis(with_axis(word, "T", {"l": 0, "y": 0}), "B", {"l": int(turned), **places}, int(turned))
    total = build(MEAN, {"weight": "B,T", "e": "B,T"}).renamed({} if smoothing else {"e": "nll"})
    system = compose(compose(logits(tied, bias, turned), words), total)
    entries = (output_entry(tied), "lm.nll", *(("loss.label_smoothing",) if smoothing else ()))
    return Equations("loss", system, ("L",), ("nll",), ("weight", "epsilon"), entries=entries)
