"""The entries about losses, optimisation, inference, views: every identity, claim and number of theirs."""

import pytest

from gradproof.symbolic.catalogue import entries, get
from gradproof.symbolic.catalogue.derivation import derive_entry
from gradproof.symbolic.catalogue.evidence import rows
from gradproof.symbolic.catalogue.proof import derived_moment, prove
from gradproof.symbolic.checking.check import check

# every row of the four sections of the list of formulas, with its verdict
VERDICTS = {
    **dict.fromkeys(
        [
            "softmax.jacobian",
            "softmax.shift",
            "softmax.cross_entropy",
            "loss.cross_entropy",
            "loss.label_smoothing",
            "lm.factorisation",
            "lm.next_token",
            "lm.nll",
            "lm.batch_loss",
            "lm.perplexity",
            "info.cross_entropy_kl",
            "info.gradient",
            "tiny_model.gradients",
            "bayes.posterior",
            "bayes.map",
            "hessian.loss",
            "decode.autoregressive",
            "decode.greedy",
            "decode.beam",
            "kv_cache.equality",
            "kv_cache.cost",
            "quantisation.inverse",
            "quantisation.error",
            "metric.bleu",
            "sequence.count",
            "boltzmann.softmax",
            "boltzmann.free_energy",
            "ntk.kernel",
            "dynamics.layer_map",
            "causal.factorisation",
            "causal.do",
            "variance.softmax_saturation",
        ],
        "proved",
    ),
    **dict.fromkeys(
        [
            "softmax.saturated_loss",
            "lm.gradient_accumulation",
            "lm.markov",
            "adam.bias_correction",
            "bayes.weight_decay",
            "quantisation.linear",
            "geometry.cosine",
            "transport.softmax",
            "rademacher.definition",
            "rademacher.generalisation",
            "dynamics.lyapunov",
        ],
        "proved under assumptions",
    ),
    **dict.fromkeys(
        [
            "info.mutual_information",
            "adam.step",
            "decode.top_p",
            "tensor.factorisation",
            "ntk.dynamics",
            "dynamics.gradient_product",
        ],
        "corrected",
    ),
    **dict.fromkeys(
        [
            "info.bottleneck",
            "bayes.training",
            "rademacher.architecture",
            "dynamics.fixed_point",
            "dynamics.spectral_radius",
            "tiny_model.coincidence",
            "interpretation.attention_weight",
        ],
        "counterexample",
    ),
    **dict.fromkeys(
        ["geometry.intrinsic_dimension", "double_descent.experiment", "interpretation.loss_and_weight"], "experiment"
    ),
    "quantum.measurement": "analogy",
}
MINE = [entry for entry in entries() if entry.id in VERDICTS]
CLAIMS = [(entry.id, claim) for entry in MINE for claim in entry.claims]
IDENTITIES = [(entry.id, identity) for entry in MINE for identity in entry.identities]
MOMENTS = [(entry.id, moment) for entry in MINE for moment in entry.moments]
# experiments have a test of their own
NUMBERS = [entry for entry in MINE if entry.evidence and ".experiments." not in entry.evidence]


def named(pair: object) -> str:
    return pair[0] if isinstance(pair, tuple) else getattr(pair, "id", str(pair))


@pytest.mark.parametrize("identifier", VERDICTS)
def test_entry_is_complete(identifier: str) -> None:
    entry = get(identifier)
    assert entry.verdict == VERDICTS[identifier]
    assert entry.title and entry.title_zh and entry.source and entry.statement
    assert bool(entry.note) == bool(entry.note_zh)
    assert entry.assumptions or entry.verdict != "proved under assumptions"


@pytest.mark.parametrize("entry", [entry for entry in MINE if entry.expression and entry.wrt], ids=named)
def test_derivation(entry) -> None:
    found = derive_entry(entry)
    assert found.lines() and all(step.checked for step in found.steps)


@pytest.mark.parametrize("pair", IDENTITIES, ids=named)
def test_identity(pair) -> None:
    proof = prove(pair[1])
    assert proof.verdict == pair[1].expected or (pair[1].expected == "proved" and proof.verdict == "agrees"), proof.how


@pytest.mark.parametrize("pair", CLAIMS, ids=named)
def test_claim(pair) -> None:
    """The document's wrong form is refuted, the right one proved."""
    claim = pair[1]
    found = check(
        claim.expression, claim.shapes, claim.wrt, claim.claim, cotangent=claim.cotangent, layout=claim.layout
    )
    assert found.verdict == claim.expected or (claim.expected == "proved" and found.verdict == "agrees"), str(found)
    assert claim.expected != "refuted" or found.counterexample


@pytest.mark.parametrize("pair", MOMENTS, ids=named)
def test_moment(pair) -> None:
    value, right = derived_moment(pair[1])
    assert right, value


@pytest.mark.parametrize("entry", NUMBERS, ids=named)
def test_numbers(entry) -> None:
    found = rows(entry)
    assert found and all(row.passed for row in found), [str(row) for row in found if not row.passed]


@pytest.mark.parametrize("entry", [e for e in MINE if e.verdict in ("corrected", "counterexample")], ids=named)
def test_correction_is_computed(entry) -> None:
    """A refuted formula, or a number that differs."""
    refuted = any(claim.expected == "refuted" for claim in entry.claims)
    refuted |= any(identity.expected == "refuted" for identity in entry.identities)
    assert refuted or any("differs" in str(row.expected) or "≤" in str(row.expected) for row in rows(entry))
