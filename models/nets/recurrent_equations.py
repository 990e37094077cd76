"""Recurrent encoders and decoders with attention, made from one step by axes of batch and time. Source position j.

A whole sequence is one recurrence h[t+1] = cell(h[t], x[t]); its adjoint is the reversed recurrence, and what need not
be inside a loop (input products, weight gradients, attention without input feeding) is computed for all steps at once.
States are stored time first, so that a step reads contiguous rows. Parameters stand to the right of what they multiply.
"""

from __future__ import annotations

from functools import lru_cache, reduce
from itertools import pairwise

from sympy import Expr

from gradproof.models.nets.block import Equations, stated
from gradproof.models.nets.entries import entry
from gradproof.symbolic.equations.axes import (
    from_the_end,
    laid_out,
    over_time,
    with_axis,
    with_own_size,
    with_sizes,
    without_axis,
)
from gradproof.symbolic.equations.compose import added, applied, behind, compose, dropped, inlined, part, split_off
from gradproof.symbolic.equations.expr import Access
from gradproof.symbolic.equations.functions import sigma
from gradproof.symbolic.equations.system import Array, System
from gradproof.symbolic.language.reader import build

# One step of the cells that no document has, as torch defines them. What is read more than once has a name, so that its
# adjoint is made once: u, the sum that a gate is applied to; hn = h W_hn + b_hn; tc = tanh(c).
GRU = (
    "hn = h_0 @ W_hn + b_hn; "
    "ur = x @ W_ir + b_ir + h_0 @ W_hr + b_hr; r = sigmoid(ur); "
    "uz = x @ W_iz + b_iz + h_0 @ W_hz + b_hz; z = sigmoid(uz); "
    "un = x @ W_in + b_in + r*hn; n = tanh(un); "
    "h = (1 - z)*n + z*h_0"
)
LSTM = (
    "ui = x @ W_ii + b_ii + h_0 @ W_hi; i = sigmoid(ui); uf = x @ W_if + b_if + h_0 @ W_hf; f = sigmoid(uf); "
    "ug = x @ W_ig + b_ig + h_0 @ W_hg; g = tanh(ug); uo = x @ W_io + b_io + h_0 @ W_ho; o = sigmoid(uo); "
    "c = f*c_0 + i*g; tc = tanh(c); h = o*tc"
)
CELLS = {"rnn": ("n",), "gru": ("r", "z", "n"), "lstm": ("i", "f", "g", "o")}  # the gates
STATES = {"rnn": {"h_0": "h"}, "gru": {"h_0": "h"}, "lstm": {"h_0": "h", "c_0": "c"}}  # before and after a step
SCORES = {"dot": "attention.score_dot", "scaled": "attention.score_scaled", "additive": "attention.score_additive"}


@lru_cache
def cell(kind: str) -> System:
    """One step, from the input x and the states before it to those after it.

    rnn:   h' = tanh(x W_i + b + h W_h)
    gru:   r, z = σ(…);  n = tanh(x W_in + b_in + r ⊙ (h W_hn + b_hn));  h' = (1 − z) ⊙ n + z ⊙ h
    lstm:  i, f, o = σ(…), g = tanh(…);  c' = f ⊙ c + i ⊙ g;  h' = o ⊙ tanh(c')
    """
    if kind == "rnn":
        rows = laid_out(entry("rnn.cell"), {"W_h": (1, 0), "W_x": (1, 0)}).renamed({"h": "new"})
        rows = rows.renamed({"z": "un", "W_h": "W_hn", "W_x": "W_in", "b": "b_in", "new": "h"})
        return with_sizes(applied(rows, sigma, build("tanh(x)", {"x": ""})), {"e": "p"})
    gates = CELLS[kind]
    shapes = {"x": "p", **dict.fromkeys(STATES[kind], "d")}
    shapes |= {f"W_i{g}": "p,d" for g in gates} | {f"b_i{g}": "d" for g in gates}
    shapes |= {f"W_h{g}": "d,d" for g in gates} | ({f"b_h{g}": "d" for g in gates} if kind == "gru" else {})
    return build(GRU if kind == "gru" else LSTM, shapes)


def used(kind: str) -> tuple[str, ...]:
    return ("rnn.cell",) if kind == "rnn" else ()


@lru_cache
def embedding(dropout: bool) -> Equations:
    """x[t,b] = E[w[b,t]], time first."""
    system = looked_up("E", "x", "p")
    system = dropped(system, "x", "D") if dropout else system
    return Equations("embedding", system, ("x",), masks=("D",) if dropout else (), entries=("embedding.lookup",))


def looked_up(table: str, called: str, width: str) -> System:
    """Rows of a table for the tokens w (B,T), time first."""
    rows = with_sizes(entry("embedding.lookup"), {"n": "T", "d": width})
    return with_axis(rows, "B", {"w": 0}, 1).renamed({"E": table, "X": called})


@lru_cache
def layer(
    kind: str, *, encoder: bool = False, reverse: bool = False, context: bool = False, tokens: bool = False
) -> Equations:
    """A whole layer: from inputs x (T,B,p) to states s (T,B,d), and the last state.

    An `encoder` starts at a constant and knows padding: m[b,t] = 1 at real tokens. `reverse` runs from the end.
    `context` is a vector ctx (B,u) that every step gets. With `tokens` the inputs are the embeddings of tokens w (B,T):
    the rows of E W_i are looked up, and a small vocabulary makes that product much smaller than the one of all inputs.
    """
    states, inputs = STATES[kind], [f"x{g}" for g in CELLS[kind]]
    step = cell(kind)
    for g in CELLS[kind]:
        step = split_off(step, f"u{g}", f"x{g}", free_of=states)
    first = gate_inputs(part(step, inputs), CELLS[kind], tokens)
    for g in CELLS[kind] if context else ():
        given = build(f"ctx @ W_c{g}", {"ctx": "u", f"W_c{g}": "u,d"})
        first = added(first, f"x{g}", with_axis(given, "B", {"ctx": 0}), (1, 2))
    rest = part(step, tuple(states.values()), given=inputs)
    for before, after in states.items() if encoder else ():
        rest = kept_at_padding(rest, before, after)
    rest = with_axis(rest, "B", dict.fromkeys((*inputs, *states, "m"), 0))
    system = compose(first, over_time(rest, "T", states, {**dict.fromkeys(inputs, 0), "m": 1}))
    if reverse:
        system = from_the_end(system, {"w" if tokens else "x": 1 if tokens else 0, "m": 1})
    ends = f"s = {'h[:0:-1]' if reverse else 'h[1:]'}; last = h[-1]" + ("; last_c = c[-1]" if kind == "lstm" else "")
    system = compose(system, build(ends, {state: "T+1,B,d" for state in states.values()}))
    outputs = ("s", "last", "last_c") if kind == "lstm" else ("s", "last")
    entries = (*used(kind), *(("embedding.lookup",) if tokens else ()))
    return Equations(f"{kind}_layer", system, outputs, (), ("m", *states) if encoder else (), entries=entries)


def gate_inputs(products: System, gates: tuple[str, ...], tokens: bool) -> System:
    """What the gates get from the inputs of all steps, (T,B,d): made of x, or looked up for tokens."""
    if not tokens:
        return with_axis(with_axis(products, "B", {"x": 0}), "T", {"x": 0})
    tables = with_axis(products, "N", {"x": 0}).renamed({"x": "E", **{f"x{g}": f"p{g}" for g in gates}})
    return reduce(compose, (looked_up(f"p{g}", f"x{g}", "d") for g in gates), tables)


def kept_at_padding(step: System, before: str, after: str) -> System:
    """Where the mask m is 0 (padding), the state stays: hm is the new state before the mask."""
    new = f"{after}m"

    def make(body: Expr, place: tuple[Expr, ...]) -> Expr:
        return Access("m") * body + (1 - Access("m")) * Access(before, *place)

    return behind(step.renamed({after: new}), new, after, make, [Array("m")])


@lru_cache
def dropped_states() -> Equations:
    """The states with dropout, for the output."""
    return stated("dropped", "R = s * D", {"s": "T,B,d", "D": "T,B,d"}, ("R",), masks=("D",))


@lru_cache
def joined(rank: int) -> Equations:
    """Two directions side by side: [f; g] along the last axis, as `attention.readout` joins two vectors."""
    system = part(entry("attention.readout"), ("c",)).renamed({"c": "y", "a": "f", "s": "g"})
    for size in ("B", "T")[: rank - 1]:
        system = with_axis(system, size, {"f": 0, "g": 0})
    return Equations("joined", system, ("y",), entries=("attention.readout",))


# ----------------------------------------------------------------------------------------------------------- attention

# tanh(W_c [a; s]) of `attention.readout`, whose identity says that it is this sum of two products
READOUT = "y = tanh(a @ W_a + s @ W_s + b_c)"


@lru_cache
def attend(kind: str) -> System:
    """From one state s and the memory H (S places) to the weights alpha and the readout y.

    The parts of an additive score have names, K and Q, so that K is made once; and so has its tanh, so that the
    backward pass need not compute it again.
    """
    memory = "u" if kind == "additive" else "d"  # a product needs equal widths
    columns = {"H": (1, 0), "W_1": (1, 0), "W_2": (1, 0), "B": (1, 0), "C": (1, 0)}
    score = entry(SCORES[kind])
    score = laid_out(score, {name: order for name, order in columns.items() if name in score.arrays})
    if kind == "additive":
        score = split_off(score.renamed({"C": "F"}), "B", "K", free_of=("s",))
        score = split_off(score, "B", "Q", free_of=("K",))
        score = inlined(with_own_size(score, "u", {"H": 1, "W_1": 0}), "B")
    context = laid_out(entry("attention.context"), {"H": (1, 0)})
    context = with_sizes(context, {"d": memory})
    weights = without_axis(entry("attention.masked_backward"), "n").renamed({"S": "e", "S1": "em", "a": "alpha"})
    readout = build(READOUT, {"a": memory, "s": "d", "W_a": f"{memory},q", "W_s": "d,q", "b_c": "q"})
    places = [with_sizes(score, {"n": "S"}), with_sizes(weights, {"m": "S"}), with_sizes(context, {"n": "S"}), readout]
    return reduce(compose, places)


def attended(kind: str) -> tuple[str, ...]:
    return SCORES[kind], "attention.masked_backward", "attention.context"


def with_batch(system: System, inputs: tuple[str, ...]) -> System:
    """The batch as first axis; of the memory, and of what is made of it alone, as the second."""
    return with_axis(system, "B", {**dict.fromkeys(inputs, 0), "M": 0, "H": 1, "K": 1})


@lru_cache
def attention(kind: str, dropout: bool) -> Equations:
    """The readout s̃ = tanh(a W_a + s W_s + b_c) of all steps; [a; s] W_c is the sum of two products."""
    system = with_axis(with_batch(attend(kind), ("s",)), "T", {"s": 0}).renamed({"y": "R"})
    system = dropped(system, "R", "D") if dropout else system
    return Equations("attention_readout", system, ("R",), ("alpha",), (), ("D",) if dropout else (), attended(kind))


@lru_cache
def fed_decoder(kind: str, score: str, layers: int, dropout: bool) -> Equations:
    """A decoder with input feeding: the readout s̃ of a step is a further input of the next one. One recurrence."""
    numbers = [str(k) for k in range(1, layers + 1)] if layers > 1 else [""]
    states = {f"{old}{n}": f"{new}{n}" for n in numbers for old, new in STATES[kind].items()} | {"y_0": "y"}
    system = numbered(kind, numbers[0], "x")
    for g in CELLS[kind]:
        system = added(system, f"u{g}{numbers[0]}", build(f"y_0 @ W_y{g}", {"y_0": "q", f"W_y{g}": "q,d"}))
        system = split_off(system, f"u{g}{numbers[0]}", f"x{g}", free_of=states)
    for below, n in pairwise(numbers):
        system = compose(system, with_sizes(numbered(kind, n, f"h{below}"), {"p": "d"}))
    system = compose(system, attend(score).renamed({"s": f"h{numbers[-1]}"}))
    system = over_time(with_batch(system, ("x", *states)), "T", states, {"x": 0})
    last = [f"{state}_last{n} = {state}{n}[-1]" for n in numbers for state in STATES[kind].values()]
    result = "R = y[1:]" + (" * D" if dropout else "")
    shapes = {state: "T+1,B,d" for state in states.values()} | {"y": "T+1,B,q"}
    shapes |= {"D": "T,B,q"} if dropout else {}
    system = compose(system, build("; ".join([*last, "y_last = y[-1]", result]), shapes))
    masks = ("D",) if dropout else ()
    extra = ("alpha", *(line.split(" ")[0] for line in last), "y_last")
    return Equations("fed_decoder", system, ("R",), extra, ("y_0",), masks, (*used(kind), *attended(score)))


def numbered(kind: str, n: str, source: str) -> System:
    """The step of one layer: all its arrays have the layer's number, its input is `source`."""
    step = cell(kind)
    names = {name: f"{name}{n}" for name in step.arrays if name != "x"}
    return step.renamed(names).renamed({"x": source})
