"""The equations of recurrent encoders and decoders with attention. Time t, source position j, batch b.

A whole sequence is one recurrence h[t+1] = cell(h[t], x[t]); its adjoint is the reversed recurrence, and what need not
be inside a loop (input products, weight gradients, attention without input feeding) is computed for all steps at once.
States are stored time first, so that a step reads contiguous rows. Parameters stand to the right of what they multiply.
"""

from __future__ import annotations

from gradproof.models.nets.block import Equations

GATES = {  # what each gate applies to its sum
    "rnn": {"n": "tanh"},
    "gru": {"r": "sigmoid", "z": "sigmoid", "n": "tanh"},
    "lstm": {"i": "sigmoid", "f": "sigmoid", "g": "tanh", "o": "sigmoid"},
}
CELLS = {kind: tuple(gates) for kind, gates in GATES.items()}
SCORES = ("dot", "scaled", "additive")


def embedding(dropout: bool) -> Equations:
    """x[t,b] = E[w[b,t]], time first."""
    text = "x[t,b,k] = E[w[b,t],k]" + ("*D[t,b,k]" if dropout else "")
    shapes = {"w": "B,T:index=N", "E": "N,p", **({"D": "T,B,p"} if dropout else {})}
    return Equations("embedding", text, shapes, ("x",), constant=("D",))


def cell(kind: str, gates: dict[str, str], n: str, masked: str = "") -> list[str]:
    """One step of a layer called n: `gates` holds what each gate gets from the step's input, biases included.

    rnn:   h' = tanh(gate + h W_h)
    gru:   r, z = σ(gate + h W + b);  n = tanh(gate + r ⊙ (h W_hn + b_hn));  h' = (1 − z) ⊙ n + z ⊙ h   (torch's)
    lstm:  i, f, o = σ(…), g = tanh(…);  c' = f ⊙ c + i ⊙ g;  h' = o ⊙ tanh(c')
    Where the mask `masked` is 0 (padding), the state stays.
    What is read more than once has a name, so that its adjoint is made once: u, the sum that a gate is applied to;
    hn = h W_hn + b_hn; tc = tanh(c'); and hm, cm, the new state before the mask.
    """
    at, h = "[t,b,k]", f"h{n}[t,b,k]"
    back = {g: f"sum[l](h{n}[t,b,l]*W_h{g}{n}[l,k])" for g in gates}
    if kind == "gru":
        back = {g: f"{text} + b_h{g}{n}[k]" for g, text in back.items()}
    lines = [f"h{n}[0,b,k] = h_0{n}[b,k]"]
    if kind == "gru":
        lines.append(f"hn{n}{at} = {back['n']} + 0*({gates['n']})")  # the term 0 gives t its range
        back["n"] = f"r{n}{at}*hn{n}{at}"
    for g in CELLS[kind]:
        lines.append(f"u{g}{n}{at} = {gates[g]} + {back[g]}")
        if kind != "rnn":
            lines.append(f"{g}{n}{at} = {GATES[kind][g]}(u{g}{n}{at})")
    if kind == "rnn":
        new = f"tanh(un{n}{at})"
    elif kind == "gru":
        new = f"(1 - z{n}{at})*n{n}{at} + z{n}{at}*{h}"
    else:
        lines.insert(1, f"c{n}[0,b,k] = c_0{n}[b,k]")
        lines += carried("c", n, f"f{n}{at}*c{n}{at} + i{n}{at}*g{n}{at}", masked)
        lines.append(f"tc{n}{at} = tanh(c{n}[t+1,b,k])")
        new = f"o{n}{at}*tc{n}{at}"
    return [*lines, *carried("h", n, new, masked)]


def carried(state: str, n: str, new: str, mask: str) -> list[str]:
    """The next value of a state: `new`, or the old one where the mask is 0."""
    at, after = "[t,b,k]", f"{state}{n}[t+1,b,k]"
    if not mask:
        return [f"{after} = {new}"]
    return [f"{state}m{n}{at} = {new}", f"{after} = {mask}*{state}m{n}{at} + (1 - {mask})*{state}{n}{at}"]


def cell_shapes(kind: str, n: str, width: str = "d") -> dict[str, str]:
    """Initial state, recurrent weights, and the biases of a layer (the GRU has two of them, as torch's)."""
    shapes = {f"h_0{n}": f"B,{width}", **({f"c_0{n}": f"B,{width}"} if kind == "lstm" else {})}
    shapes |= {f"W_h{g}{n}": f"{width},{width}" for g in CELLS[kind]}
    shapes |= {f"b_i{g}{n}": width for g in CELLS[kind]}
    return shapes | ({f"b_h{g}{n}": width for g in CELLS[kind]} if kind == "gru" else {})


def layer(
    kind: str, *, encoder: bool = False, reverse: bool = False, context: bool = False, tokens: bool = False
) -> Equations:
    """A whole layer: from inputs x (T,B,p) to states s (T,B,d), and the last state.

    An `encoder` starts at a constant and knows padding: m[b,t] = 1 at real tokens. `reverse` runs from the end.
    `context` is a vector ctx (B,u) that every step gets. With `tokens` the inputs are the embeddings of tokens w (B,T):
    the rows of E W_i are looked up, and a small vocabulary makes that product much smaller than the one of all inputs.
    """
    masked = encoder
    at = "T-1-t" if reverse else "t"
    lines = []
    for g in CELLS[kind]:
        whole = f"sum[l](x[{at},b,l]*W_i{g}[l,k]) + b_i{g}[k]"
        if tokens:
            lines.append(f"p{g}[v,k] = sum[l](E[v,l]*W_i{g}[l,k]) + b_i{g}[k]")
            whole = f"p{g}[w[b,{at}],k]"
        extra = f" + sum[l](ctx[b,l]*W_c{g}[l,k])" if context else ""
        lines.append(f"x{g}[t,b,k] = {whole}{extra}{ranged('t', 'm[b,t]', masked and reverse)}")
    lines += cell(kind, {g: f"x{g}[t,b,k]" for g in CELLS[kind]}, "", f"m[b,{at}]" if masked else "")
    lines += ["s = h[:0:-1]" if reverse else "s = h[1:]", "last = h[-1]"]
    inputs = {"w": "B,T:index=N", "E": "N,p"} if tokens else {"x": "T,B,p"}
    shapes = {**inputs, **cell_shapes(kind, ""), **{f"W_i{g}": "p,d" for g in CELLS[kind]}}
    shapes |= {f"W_c{g}": "u,d" for g in CELLS[kind]} | {"ctx": "B,u"} if context else {}
    shapes |= {"m": "B,T"} if masked else {}
    outputs: tuple[str, ...] = ("s", "last")
    if kind == "lstm":
        lines.append("last_c = c[-1]")
        outputs = (*outputs, "last_c")
    constant = ("m", "h_0", "c_0") if encoder else ()
    return Equations(f"{kind}_layer", "; ".join(lines), shapes, outputs, constant=constant)


def ranged(letter: str, access: str, needed: bool) -> str:
    """A term that is 0: an access which gives a letter its range, where nothing else does."""
    return f" + 0*{access}" if needed else ""


def dropped() -> Equations:
    """The states with dropout, for the output."""
    return Equations("dropped", "R = s * D", {"s": "T,B,d", "D": "T,B,d"}, ("R",), constant=("D",))


def joined(rank: int) -> Equations:
    """Two directions side by side: [f; g] along the last axis."""
    lead = "t,b," if rank == 3 else "b,"
    shape = "T,B,d" if rank == 3 else "B,d"
    text = f"y[{lead}k] = f[{lead}k]; y[{lead}k+d] = g[{lead}k]"
    return Equations("joined", text, {"f": shape, "g": shape}, ("y",))


def scores(kind: str, state: str, zero: str = "") -> list[str]:
    """e[t,b,j]: how well state s_t fits the memory H_i; the term `zero` gives t its range where nothing else does.

    The additive score's tanh has a name, so that the backward pass need not compute it again.
    """
    if kind == "additive":
        return [
            "K[j,b,w] = sum[k](H[j,b,k]*W_1[k,w])",
            f"Q[t,b,w] = sum[k]({state}*W_2[k,w]){zero}",
            "F[t,b,j,w] = tanh(K[j,b,w] + Q[t,b,w])",
            "e[t,b,j] = sum[w](v[w]*F[t,b,j,w])",
        ]
    product = f"sum[k]({state}*H[j,b,k])"
    return [f"e[t,b,j] = {product}" + ("/sqrt(d)" if kind == "scaled" else "") + zero]


def score_shapes(kind: str, width: str) -> dict[str, str]:
    memory = "u" if kind == "additive" else width  # a product needs equal widths
    shapes = {"H": f"S,B,{memory}", "M": "B,S:index=2"}
    return shapes | ({"W_1": "u,d_a", "W_2": f"{width},d_a", "v": "d_a"} if kind == "additive" else {})


READ = [
    "em[t,b,j] = where(M[b,j] == 1, e[t,b,j], -inf)",
    "alpha = softmax(em)",
    "a[t,b,k] = sum[j](alpha[t,b,j]*H[j,b,k])",
]


def attention(kind: str, dropout: bool) -> Equations:
    """The readout s̃ = tanh(a W_a + s W_s + b_c) of all steps; [a; s] W_c is the sum of two products."""
    combined = "tanh(sum[k](a[t,b,k]*W_a[k,l]) + sum[k](s[t,b,k]*W_s[k,l]) + b_c[l])"
    lines = [*scores(kind, "s[t,b,k]"), *READ, f"R[t,b,l] = {combined}" + ("*D[t,b,l]" if dropout else "")]
    shapes = {
        "s": "T,B,d",
        **score_shapes(kind, "d"),
        "W_a": "u,q" if kind == "additive" else "d,q",
        "W_s": "d,q",
        "b_c": "q",
    }
    shapes |= {"D": "T,B,q"} if dropout else {}
    return Equations("attention_readout", "; ".join(lines), shapes, ("R",), ("alpha",), ("D",))


def fed_decoder(cell_kind: str, score: str, layers: int, dropout: bool) -> Equations:
    """A decoder with input feeding: the readout s̃ of a step is a further input of the next one. One recurrence."""
    lines: list[str] = []
    shapes = {
        "x": "T,B,p",
        "y_0": "B,q",
        **score_shapes(score, "d"),
        "W_a": "u,q" if score == "additive" else "d,q",
        "W_s": "d,q",
        "b_c": "q",
    }
    for number in range(1, layers + 1):
        n = str(number) if layers > 1 else ""
        below = str(number - 1)
        gates = {}
        for g in CELLS[cell_kind]:
            if number == 1:
                lines.append(f"x{g}[t,b,k] = sum[l](x[t,b,l]*W_i{g}{n}[l,k]) + b_i{g}{n}[k]")
                gates[g] = f"x{g}[t,b,k] + sum[l](y[t,b,l]*W_y{g}[l,k])"
                shapes |= {f"W_i{g}{n}": "p,d", f"W_y{g}": "q,d"}
            else:
                zero = ranged("t", f"x{g}[t,b,k]", True)
                gates[g] = f"sum[l](h{below}[t+1,b,l]*W_i{g}{n}[l,k]) + b_i{g}{n}[k]{zero}"
                shapes[f"W_i{g}{n}"] = "d,d"
        lines += cell(cell_kind, gates, n)
        shapes |= cell_shapes(cell_kind, n)
    top = str(layers) if layers > 1 else ""
    first = CELLS[cell_kind][0]
    zero = ranged("t", f"x{first}[t,b,0]", True)
    lines.insert(0, "y[0,b,l] = y_0[b,l]")
    lines += [*scores(score, f"h{top}[t+1,b,k]", zero), *READ]
    lines.append(f"y[t+1,b,l] = tanh(sum[k](a[t,b,k]*W_a[k,l]) + sum[k](h{top}[t+1,b,k]*W_s[k,l]) + b_c[l])")
    lines.append("R = y[1:]" + (" * D" if dropout else ""))
    shapes |= {"D": "T,B,q"} if dropout else {}
    extra = ("alpha", *last_states(cell_kind, layers, lines))
    return Equations("fed_decoder", "; ".join(lines), shapes, ("R",), extra, ("D", "y_0"))


def last_states(kind: str, layers: int, lines: list[str]) -> tuple[str, ...]:
    """Adds the states after the last step, which decoding carries on; returns their names."""
    found = []
    for number in range(1, layers + 1):
        n = str(number) if layers > 1 else ""
        for state in ("h", "c") if kind == "lstm" else ("h",):
            lines.insert(-1, f"{state}_last{n} = {state}{n}[-1]")
            found.append(f"{state}_last{n}")
    lines.insert(-1, "y_last = y[-1]")
    return (*found, "y_last")
