"""The equations of the Transformer's blocks, in the expression language. Batch b, positions i and j, heads a.

They are the catalogue's equations with the letters of batch and head; `tests/test_transformer.py` compares the two.
Parameters stand to the right of what they multiply (X W), as in the documents; a mask entry 1 allows, 0 forbids.
"""

from __future__ import annotations

from gradproof.models.nets.block import Equations

EPSILON = "1e-5"  # of both norms, torch's default

ACTIVATIONS = {"relu": "relu({})", "gelu": "gelu({})", "gelu_tanh": 'gelu({}, approximate="tanh")'}


def norm(kind: str) -> Equations:
    """LayerNorm (gain g, bias c) or RMSNorm (gain g), over the features."""
    if kind == "layernorm":
        text = f"y = layernorm(x, eps={EPSILON}) * g + c"
        return Equations("layernorm", text, {"x": "B,T,d", "g": "d", "c": "d"}, ("y",))
    return Equations("rmsnorm", f"y = rmsnorm(x, eps={EPSILON}) * g", {"x": "B,T,d", "g": "d"}, ("y",))


def embedding(positions: bool, scaled: bool, dropout: bool) -> Equations:
    """x_i = E[w_i] (times √d in the 2017 paper) + p_i."""
    shapes = {"w": "B,T:index=N", "E": "N,d"}
    text = "E[w[b,i],k]" + ("*sqrt(d)" if scaled else "")
    if positions:
        shapes["p"] = "T,d"
        text += " + p[i,k]"
    if dropout:
        shapes["D"] = "B,T,d"
        text = f"({text})*D[b,i,k]"
    return Equations("embedding", f"x[b,i,k] = {text}", shapes, ("x",), constant=("D", "p"))


def projection(name: str, source: str, letter: str, bias: bool, rotary: bool) -> str:
    """Queries, keys or values of all heads; with `rotary` a head's width is (2, p): two numbers for each frequency."""
    axes, sizes = ("a,c,p", "a,c,p") if rotary and name != "V" else ("a,r", "a,r")
    text = f"{name}[b,{letter},{axes}] = sum[k]({source}[b,{letter},k]*W_{name}[k,{axes}])"
    return text + (f" + b_{name}[{sizes}]" if bias else "")


def rotation(name: str, letter: str) -> str:
    """Each pair (c = 0, 1) is turned by the angle position · frequency; C is its cosine, Z its sine: − for c = 0."""
    one, other = (f"{name}[b,{letter},a,{c},p]" for c in ("c", "1-c"))
    return f"{name}r[b,{letter},a,c,p] = {one}*C[{letter},p] + {other}*Z[{letter},c,p]"


SCORES = "S[b,a,i,j] = sum[r](Q[b,i,a,r]*K[b,j,a,r])/sqrt(d_k)"
ROTARY_SCORES = "S[b,a,i,j] = sum[c,p](Qr[b,i,a,c,p]*Kr[b,j,a,c,p])/sqrt(2*d_p)"
WEIGHTS = "Sm[b,a,i,j] = where(M[b,i,j] == 1, S[b,a,i,j], -inf); A = softmax(Sm)"
DROPPED = "; Ad[b,a,i,j] = A[b,a,i,j]*DA[b,a,i,j]"
READ = "H[b,i,a,r] = sum[j]({weights}[b,a,i,j]*V[b,j,a,r])"
OUTPUT = "R[b,i,l] = X0[b,i,l] + "


def attention(cross: bool, bias: bool, rotary: bool, dropout: bool) -> Equations:
    """R = X0 + (concatenated heads) W_O: multi-head attention and its residual connection.

    Queries come from X, keys and values from X too, or from Y (`cross`). M[b,i,j] = 1 where position i may see j.
    """
    source, letter = ("Y", "j") if cross else ("X", "j")
    statements = [
        projection("Q", "X", "i", bias, rotary),
        projection("K", source, letter, bias, rotary),
        projection("V", source, letter, bias, rotary),
        *([rotation("Q", "i"), rotation("K", "j")] if rotary else []),
        *core(rotary, dropout),
        _combined(bias, dropout),
    ]
    shapes = {
        "X0": "B,T,d",
        "X": "B,T,d",
        **({"Y": "B,Ts,d"} if cross else {}),
        "M": f"B,T,{'Ts' if cross else 'T'}:index=2",
    }
    shapes |= _head_shapes(bias, rotary, "QKVO")
    shapes |= {"C": "T,d_p", "Z": "T,2,d_p"} if rotary else {}
    shapes |= {"DA": f"B,h,T,{'Ts' if cross else 'T'}", "D": "B,T,d"} if dropout else {}
    return Equations("attention", "; ".join(statements), shapes, ("R",), ("A",), ("C", "Z", "D", "DA"))


def core(rotary: bool, dropout: bool) -> list[str]:
    """From queries, keys and values to the heads' results H."""
    weights = WEIGHTS + (DROPPED if dropout else "")
    return [ROTARY_SCORES if rotary else SCORES, weights, READ.format(weights="Ad" if dropout else "A")]


def _combined(bias: bool, dropout: bool) -> str:
    text = "sum[a,r](H[b,i,a,r]*W_O[a,r,l])" + (" + b_O[l]" if bias else "")
    return OUTPUT + (f"({text})*D[b,i,l]" if dropout else text)


def _head_shapes(bias: bool, rotary: bool, names: str) -> dict[str, str]:
    turned = "h,2,d_p" if rotary else "h,d_k"
    width = {"Q": turned, "K": turned, "V": "h,d_v" if rotary else "h,d_k", "O": "h,d_v" if rotary else "h,d_k"}
    shapes = {f"W_{n}": f"d,{width[n]}" if n != "O" else f"{width[n]},d" for n in names}
    return shapes | ({f"b_{n}": width[n] if n != "O" else "d" for n in names} if bias else {})


def keys_values(bias: bool, rotary: bool) -> Equations:
    """The keys (turned, with `rotary`) and values of some positions, for the cache."""
    statements = [projection(n, "X", "j", bias, rotary) for n in "KV"]
    shapes = {"X": "B,T,d", **_head_shapes(bias, rotary, "KV")}
    if rotary:
        statements.insert(1, rotation("K", "j"))
        shapes |= {"C": "T,d_p", "Z": "T,2,d_p"}
    outputs = ("Kr", "V") if rotary else ("K", "V")
    return Equations("keys_values", "; ".join(statements), shapes, outputs, constant=("C", "Z"))


def cached_attention(bias: bool, rotary: bool) -> Equations:
    """`attention` for some new positions, with all keys and values given."""
    statements = [
        projection("Q", "X", "i", bias, rotary),
        *([rotation("Q", "i")] if rotary else []),
        *core(rotary, False),
        _combined(bias, False),
    ]
    shapes = {"X0": "B,T,d", "X": "B,T,d", "M": "B,T,Ts:index=2", **_head_shapes(bias, rotary, "QO")}
    shapes |= {"Kr": "B,Ts,h,2,d_p", "V": "B,Ts,h,d_v", "C": "T,d_p", "Z": "T,2,d_p"} if rotary else {}
    shapes |= {"K": "B,Ts,h,d_k", "V": "B,Ts,h,d_k"} if not rotary else {}
    return Equations("cached_attention", "; ".join(statements), shapes, ("R",), ("A",), ("C", "Z"))


def feed_forward(activation: str, dropout: bool) -> Equations:
    """Y = X0 + σ(X W_1 + b_1) W_2 + b_2, or X0 + (swish(X W) ⊙ (X V)) U for SwiGLU."""
    shapes = {"X0": "B,T,d", "X": "B,T,d"}
    if activation == "swiglu":
        shapes |= {"W": "d,m", "V": "d,m", "U": "m,d"}
        text = "F = X @ W; G = X @ V; C = silu(F) * G; "
        last = "C @ U"
    else:
        shapes |= {"W_1": "d,m", "b_1": "m", "W_2": "m,d", "b_2": "d"}
        text = f"F = X @ W_1 + b_1; C = {ACTIVATIONS[activation].format('F')}; "
        last = "C @ W_2 + b_2"
    if dropout:
        shapes |= {"DC": "B,T,m", "D": "B,T,d"}
        last = f"({last.replace('C @', 'Cd @')}) * D"
        text += "Cd = C * DC; "
    return Equations("feed_forward", f"{text}Y = X0 + {last}", shapes, ("Y",), constant=("D", "DC"))


def logits(tied: bool, bias: bool, turned: bool = False) -> tuple[str, dict[str, str]]:
    """l = H U + b_U, or H Eᵀ + b_U; `turned`: the positions are the first axis, the batch the second."""
    text = "l = H @ " + ("E.T" if tied else "U") + (" + b_U" if bias else "")
    leading = "T,B" if turned else "B,T"
    shapes = {"H": f"{leading},d", **({"E": "N,d"} if tied else {"U": "d,N"}), **({"b_U": "N"} if bias else {})}
    return text, shapes


def output(tied: bool, bias: bool, turned: bool = False) -> Equations:
    """The logits (B,T,N) and their log-probabilities."""
    text, shapes = logits(tied, bias, turned)
    if turned:
        text = f"{text.replace('l =', 'q =')}; l[b,i,v] = q[i,b,v]"
    return Equations("output", f"{text}; lp = log_softmax(l)", shapes, ("l",), ("lp",))


def loss(tied: bool, bias: bool, smoothing: bool, turned: bool = False) -> Equations:
    """L = Σ weight · (−Σ_v q_v log p_v) with q = (1 − ε)·[v = y] + ε/N; nll is −log p_y of every position (B,T).

    The weights say what is averaged: 1/(number of targets) at real positions, 0 at padding.
    """
    text, shapes = logits(tied, bias, turned)
    shapes |= {"y": "B,T:index=N", "weight": "B,T"}
    at = "i,b" if turned else "b,i"
    text += f"; z = logsumexp(l, axis=-1); nll[b,i] = z[{at}] - l[{at},y[b,i]]; "
    if smoothing:
        shapes["epsilon"] = ""
        text += f"u[b,i] = z[{at}] - sum[v](l[{at},v])/N; e[b,i] = (1 - epsilon)*nll[b,i] + epsilon*u[b,i]; "
    total = "e" if smoothing else "nll"
    text += f"L = sum[b,i](weight[b,i]*{total}[b,i])"
    return Equations("loss", text, shapes, ("L",), ("nll",), ("weight", "epsilon"))
