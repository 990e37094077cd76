"""The catalogue: every identifier is there, every verdict is computed, what is printed is what the documents print."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from gradproof.symbolic.catalogue import Entry, Identity, entries, get, known
from gradproof.symbolic.catalogue.chapters import CHAPTERS, chapter
from gradproof.symbolic.catalogue.derivation import derive_entry
from gradproof.symbolic.catalogue.entry import VERDICTS
from gradproof.symbolic.catalogue.proof import derived_moment, prove
from gradproof.symbolic.checking.check import check
from gradproof.symbolic.derive import derive

TOPICS = {
    "rnn": "cell loss_chain step_jacobian jacobian_product bptt singular_bound explosion",
    "grad": "clip_norm",
    "seq2seq": "chain_rule encoder decoder output loss",
    "decode": "argmax",
    "attention": "score_dot score_scaled score_additive score_variants weights context readout qkv scores row_softmax"
    " output full shapes flops bottleneck block_backward masked_backward causal_mask permutation bilinear"
    " cross neighbourhood",
    "variance": "dot_product scaled_dot_product softmax_saturation",
    "softmax": "saturated_loss",
    "mha": "head output parameters flops",
    "embedding": "lookup position_sum",
    "position": "sinusoidal unique shift frequencies",
    "rope": "rotation relative",
    "ffn": "relu backward parameters share swiglu",
    "residual": "gradient identity_path",
    "layernorm": "forward sigma_plus_eps backward moments differentials axes",
    "block": "post_ln pre_ln pre_vs_post",
    "output": "tied projection",
    "architecture": "table",
}
IDENTIFIERS = [f"{topic}.{name}" for topic, names in TOPICS.items() for name in names.split()]

# what the chapter prints, section by section
PRINTED = {
    "softmax.jacobian": ["(J_s)_jk = a_j(δ_jk − a_k)"],
    "softmax.cross_entropy": ["l̄_j = p_j − 1[j = y]"],
    "output.projection": ["Ū = hᵀl̄", "h̄ = l̄Uᵀ", "b̄ = colsum(l̄)"],
    "attention.block_backward": [
        *("W̄_O = ZᵀR̄", "Z̄ = R̄W_Oᵀ", "Ā = Z̄Vᵀ", "V̄ = AᵀZ̄", "S̄ = A ⊙ (Ā − rowsum(A ⊙ Ā))"),
        *("Q̄ = S̄K/√d_k", "K̄ = S̄ᵀQ/√d_k", "W̄_Q = XᵀQ̄", "W̄_K = XᵀK̄", "W̄_V = XᵀV̄"),
        "X̄ = R̄ + Q̄W_Qᵀ + K̄W_Kᵀ + V̄W_Vᵀ",
    ],
    "attention.masked_backward": ["S̄_ij = 1[M_ij = 1] a_ij(Ā_ij − Σ_k a_ik Ā_ik)"],
    "embedding.lookup": ["Ē_ik = Σ_{t: w_t = i} X̄_tk"],
    "ffn.backward": [
        *("W̄₂ = CᵀȲ", "C̄ = ȲW₂ᵀ", "B̄ = C̄ ⊙ σ′(B)", "W̄₁ = XᵀB̄", "X̄ = B̄W₁ᵀ", "b̄₁ = colsum(B̄)", "b̄₂ = colsum(Ȳ)"),
    ],
    "layernorm.backward": [
        *("γ̄ = g ⊙ x̂", "β̄ = g", "u = g ⊙ γ", "x̄ = (1/s)[u − mean(u) − x̂ mean(u ⊙ x̂)]"),
    ],
}


def test_every_identifier_is_there() -> None:
    assert [identifier for identifier in IDENTIFIERS if not known(identifier)] == []


def test_the_order_is_that_of_the_chapters() -> None:
    titles = [chapter(entry.id) for entry in entries()]
    assert list(dict.fromkeys(titles))[: len(CHAPTERS)] == [title for title, _, _ in CHAPTERS]
    assert sum(a != b for a, b in itertools.pairwise(titles)) == len(set(titles)) - 1
    topics = {entry.topic for entry in entries()} | {entry.id for entry in entries()}
    assert [name for _, _, names in CHAPTERS for name in names if name not in topics] == []


@pytest.mark.parametrize("entry", list(entries()), ids=lambda entry: entry.id)
def test_entry_is_complete(entry: Entry) -> None:
    assert entry.title and entry.title_zh and entry.source and entry.statement
    assert entry.verdict in VERDICTS
    assert any("一" <= sign <= "鿿" for sign in entry.title_zh + entry.note_zh) or entry.title_zh.isascii()
    assert bool(entry.note) == bool(entry.note_zh)
    if entry.verdict in ("corrected", "counterexample", "analogy"):
        assert entry.note, "say what is right"
        assert entry.right, "in LaTeX too"
        # the document's form is put to `prove` or `check`, which must refute it; against two there are numbers only
        refuted = [x for x in (*entry.identities, *entry.claims) if x.expected == "refuted"]
        assert refuted or (entry.evidence and entry.id in ("decode.argmax", "rademacher.architecture"))
    if entry.verdict == "proved under assumptions":
        assert entry.assumptions


@pytest.mark.parametrize("entry", [e for e in entries() if e.expression], ids=lambda entry: entry.id)
def test_derives_with_checked_steps(entry: Entry) -> None:
    found = derive_entry(entry)
    assert set(found.gradients) >= set(entry.wrt) or entry.mode in ("tangent", "hessian")
    assert all(step.checked for step in found.steps)
    assert found.lines() and found.latex()
    assert derive_entry(entry, "zh").steps[0].reason != found.steps[0].reason


@pytest.mark.parametrize("identifier", PRINTED)
def test_printed_as_in_the_chapter(identifier: str) -> None:
    lines = derive_entry(get(identifier)).lines()
    assert lines[-len(PRINTED[identifier]) :] == PRINTED[identifier]


STATED = [(e, i) for e in entries() for i in e.identities]
CLAIMED = [(e, c) for e in entries() for c in e.claims]
MOMENTS = [(e, m) for e in entries() for m in e.moments]


@pytest.mark.parametrize("entry, identity", STATED, ids=lambda x: getattr(x, "id", getattr(x, "says", "")))
def test_identities(entry, identity) -> None:
    found = prove(identity)
    assert found.verdict == identity.expected, found.how


LOOKUPS = {"x": "n", "p": "n:index=n", "k": ":index=n"}


@pytest.mark.parametrize(
    "left, right, verdict",
    [
        ("sum[j](delta(j, p[k])*x[j])", "x[p[k]]", "proved"),  # an entry of p is below n
        ("sum[j](delta(p[j], k))", "1", "refuted"),  # p may read k twice, or not at all
        ("where(k < n - 1, x[k], 0)", "x[k]", "refuted"),
        ("sum[i=0:n](i)*x[k]", "x[k]*n*(n - 1)/2", "proved"),
    ],
)
def test_lookups_in_identities(left: str, right: str, verdict: str) -> None:
    assert prove(Identity(left, right, LOOKUPS)).verdict == verdict


@pytest.mark.parametrize("entry, claim", CLAIMED, ids=lambda x: getattr(x, "id", getattr(x, "says", "")))
def test_claims(entry, claim) -> None:
    found = check(claim.expression, claim.shapes, claim.wrt, claim.claim, claim.cotangent, layout=claim.layout)
    assert found.verdict == claim.expected, found.how
    assert found.verdict != "refuted" or (found.counterexample is not None and found.correct)


@pytest.mark.parametrize("entry, moment", MOMENTS, ids=lambda x: getattr(x, "id", getattr(x, "says", "")))
def test_moments(entry, moment) -> None:
    value, right = derived_moment(moment)
    assert right, value


def test_one_equation_in_one_place() -> None:
    """attention.neighbourhood is the equation of attention.output; the variants of attention share their weights."""
    assert get("attention.neighbourhood").identities[0].right == get("attention.output").expression
    for identifier in ("attention.full", "attention.block_backward", "attention.cross"):
        assert get("attention.row_softmax").expression in get(identifier).expression


# --- a changed forward, not a table

CHANGES: dict[str, tuple[str, Callable[[str], str], str]] = {
    "another activation": ("ffn.backward", lambda text: text.replace("sigma(B)", "silu(B)"), "B̄"),
    "a temperature": ("attention.block_backward", lambda text: text.replace("softmax(S)", "softmax(S / 3)"), "S̄"),
    "a missing scale": ("attention.block_backward", lambda text: text.replace(" / sqrt(d_k)", ""), "Q̄"),
    "another normalisation": ("layernorm.backward", lambda text: text.replace("layernorm", "rmsnorm"), "x̄"),
    "a second residual": ("attention.block_backward", lambda text: text.replace("R = X +", "R = 2*X +"), "X̄"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changed_forward_changes_the_backward(change: str) -> None:
    pytest.importorskip("torch")
    from gradproof.numeric.crosschecks import crosscheck

    identifier, edit, affected = CHANGES[change]
    entry = get(identifier)
    expression = edit(entry.expression)
    assert expression != entry.expression
    changed = derive(expression, entry.shapes, list(entry.wrt), entry.cotangent, entry.shown)
    report = crosscheck(changed)
    assert report.passed, str(report)
    assert {"torch", "differences", "mpmath"} == {row.against for row in report.rows if row.passed}
    before = [line for line in derive_entry(entry).lines() if line.startswith(f"{affected} = ")]
    after = [line for line in changed.lines() if line.startswith(f"{affected} = ")]
    assert before and before != after


# --- oracles


def test_oracles_belong_to_entries() -> None:
    pytest.importorskip("torch")
    from gradproof.numeric.oracles import oracles

    assert [identifier for identifier in oracles() if not known(identifier)] == []
    mine = [identifier for identifier in IDENTIFIERS if get(identifier).expression]
    assert [identifier for identifier in mine if identifier not in oracles()] == []


def test_multihead_oracle_is_torchs_module() -> None:
    """The path through concatenated heads and torch's own multi-head attention give the same."""
    torch = pytest.importorskip("torch")
    from gradproof.numeric.oracles.attention import attention, multihead

    rng = np.random.default_rng(0)
    x, y = (torch.as_tensor(rng.normal(size=(n, 6))) for n in (3, 4))
    q, k, v = (torch.as_tensor(rng.normal(size=(2, 6, 3))) for _ in range(3))
    out = torch.as_tensor(rng.normal(size=(2, 3, 6)))
    by_hand = torch.cat([attention(x @ q[a], y @ k[a], y @ v[a]) for a in range(2)], dim=1) @ out.flatten(0, 1)
    module = torch.nn.MultiheadAttention(6, 2, bias=False, dtype=torch.float64)
    with torch.no_grad():
        module.in_proj_weight.copy_(torch.cat([w.transpose(0, 1).flatten(1).T for w in (q, k, v)]))
        module.out_proj.weight.copy_(out.flatten(0, 1).T)
    theirs, _ = module(x[:, None], y[:, None], y[:, None])
    assert torch.allclose(multihead(x, y, q, k, v, out), by_hand, rtol=0, atol=1e-13)
    assert torch.allclose(theirs[:, 0], by_hand, rtol=0, atol=1e-13)


def test_wrong_oracle_fails() -> None:
    pytest.importorskip("torch")
    import gradproof.numeric.oracles as registry
    from gradproof.numeric.verify import verify_entry

    right = registry.oracles()["attention.output"]
    registry._ORACLES["attention.output"] = lambda A, V: 1.0000001 * right(A, V)
    try:
        result = verify_entry(get("attention.output"))
    finally:
        registry._ORACLES["attention.output"] = right
    assert result.status == "failed" and "torch" in result.problems[0]
    assert verify_entry(get("attention.output")).status == "passed"
