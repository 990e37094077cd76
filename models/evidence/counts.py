"""Parameters and operations, counted from the equations and the ranges of their letters."""

from __future__ import annotations

from sympy import Expr, Rational

from gradproof.symbolic.catalogue.attention import ATTENTION_SHAPES, OUTPUT, PROJECTION_SHAPES, PROJECTIONS, WEIGHTS
from gradproof.symbolic.catalogue.entry import get
from gradproof.symbolic.catalogue.evidence import Evidence, same
from gradproof.symbolic.catalogue.multihead import MHA, MHA_PARAMETERS, MHA_SHAPES
from gradproof.symbolic.counting import Cost, cost, parameters, size_text, size_value, with_sizes
from gradproof.symbolic.equations.system import System
from gradproof.symbolic.language.reader import build

HEADS = {"d_k": "d/h", "d_v": "d/h", "m": "n"}


def entry_system(identifier: str) -> System:
    entry = get(identifier)
    return build(entry.expression, entry.shapes)


def of(found: Cost, *names: str) -> Expr:
    """The operations of the named equations together."""
    return sum((row.flops for row in found.rows if row.name in names), Rational(0))


def counted(label: str, count: Expr, expected: str, sizes: dict[str, str] | None = None) -> Evidence:
    """A count against the formula that it must be; both are shown as they are printed."""
    value, wanted = with_sizes(count, sizes or {}), size_value(expected).expand()
    return Evidence(label, size_text(value), size_text(wanted), 0.0, value == wanted)


def attention_flops() -> list[Evidence]:
    """QKᵀ and AV, each on its own, and everything together."""
    scores, mixing = (cost(build(text, ATTENTION_SHAPES)) for text in ("Q @ K.T", "A = softmax(Q @ K.T); A @ V"))
    whole = cost(build(WEIGHTS + OUTPUT, ATTENTION_SHAPES))
    return [
        counted("QKᵀ", scores.flops, "2*n**2*d_k"),
        counted("AV", mixing.rows[-1].flops, "2*n**2*d_v"),
        same("softmax(QKᵀ/√d_k)V, leading order", whole.order, "O(n²·d_k + n²·d_v)"),
        counted("everything, with the scaling and the softmax", whole.flops, "2*n**2*d_k + 2*n**2*d_v + 4*n**2"),
    ]


def bottleneck() -> list[Evidence]:
    """Projections against scores and mixing, with d_k = d_v = d."""
    square = {"d_k": "d", "d_v": "d"}
    projections = cost(build(PROJECTIONS + WEIGHTS + "O = A @ V; R = O @ W_O", {**PROJECTION_SHAPES, "W_O": "d_v,d"}))
    linear = with_sizes(of(projections, "Q", "K", "V", "R"), square)
    quadratic = with_sizes(cost(build("A = Q @ K.T; A @ V", ATTENTION_SHAPES)).flops, square)

    def ratio(n: int, d: int) -> Rational:
        return with_sizes(quadratic, {"n": n, "d": d}) / with_sizes(linear, {"n": n, "d": d})

    return [
        counted("four projections", linear, "8*d**2*n"),
        counted("scores and mixing", quadratic, "4*n**2*d"),
        same("n = 512, d = 512: the part with n² over the projections", ratio(512, 512), 0.5),
        same("n = 2d = 1024: they are equal", ratio(1024, 512), 1),
        same("n = 4096, d = 512", ratio(4096, 512), 4),
    ]


def mha_parameters() -> list[Evidence]:
    system = build(MHA, MHA_SHAPES)
    count = parameters(system, MHA_PARAMETERS)
    return [
        counted("all projections, any d_k and d_v", count, "2*d*d_k*h + 2*d*d_v*h"),
        counted("d_k = d_v = d/h", count, "4*d**2", HEADS),
        counted("one head, d_k = d_v = d", count, "4*d**2", {"h": "1", "d_k": "d", "d_v": "d"}),
        counted("d_model = 512, h = 8", count, "1048576", {**HEADS, "d": "512", "h": "8"}),
        counted(
            "torch's biases, of Q, K, V and the output",
            4 * with_sizes(parameters(build("B[k] = b[k]", {"b": "d"}), ["b"]), {}),
            "4*d",
        ),
    ]


def mha_flops() -> list[Evidence]:
    found = cost(build(MHA, MHA_SHAPES))
    contraction = build("E[a,i,j] = sum[r](Q[a,i,r]*K[a,j,r])", {"Q": "h,n,d_k", "K": "h,n,d_k"})
    mixing = build("H[a,i,r] = sum[j](A[a,i,j]*V[a,j,r])", {"A": "h,n,n", "V": "h,n,d_v"})
    pairs = cost(contraction).flops + cost(mixing).flops
    return [
        counted("scores and mixing", pairs, "2*h*n**2*d_k + 2*h*n**2*d_v"),
        counted("d_k = d_v = d/h: whatever the number of heads", pairs, "4*n**2*d", HEADS),
        counted("the four projections", of(found, "Q", "K", "V", "O"), "8*d**2*n", HEADS),
    ]


def ffn_parameters() -> list[Evidence]:
    system, wide = entry_system("ffn.relu"), {"d_ff": "4*d"}
    weights = parameters(system, ["W_1", "W_2"])
    return [
        counted("weights", weights, "2*d*d_ff"),
        counted("d_ff = 4 d", weights, "8*d**2", wide),
        counted("with the documented biases", parameters(system, ["W_1", "W_2", "b_1", "b_2"]), "8*d**2 + 5*d", wide),
    ]


def ffn_share() -> list[Evidence]:
    """The share in one block, with cross-attention, and with embeddings."""
    wide = {"d_ff": "4*d", **HEADS}
    ffn = with_sizes(parameters(entry_system("ffn.relu"), ["W_1", "W_2"]), wide)
    attention = with_sizes(parameters(build(MHA, MHA_SHAPES), MHA_PARAMETERS), wide)
    base = {"d": 512}
    table = 37000 * 512  # one shared vocabulary, as in the original paper
    layers = 6 * (ffn + attention) + 6 * (ffn + 2 * attention)
    share = with_sizes(12 * ffn, base) / (with_sizes(layers, base) + table)
    return [
        same("one block", ffn / (ffn + attention), Rational(2, 3)),
        same("one decoder block with cross-attention", ffn / (ffn + 2 * attention), Rational(1, 2)),
        same("encoder and decoder, 6 layers each, without embeddings", (12 * ffn / layers).cancel(), Rational(4, 7)),
        same("Transformer base with a vocabulary of 37000", float(share), 0.4, 0.01),
    ]
