"""Numbers that must come out, computed from the equations of the catalogue and by the models' code."""

import ast
import math
from pathlib import Path

import numpy as np
import pytest

from gradproof.models.decoding.filters import top_p_filter
from gradproof.models.decoding.metrics import bleu
from gradproof.models.evidence.algorithms import tiny_hessian
from gradproof.models.nets.positions import sinusoids
from gradproof.models.nets.quantise import quantise
from gradproof.models.training.optimisers import clip
from gradproof.symbolic.catalogue.entry import get
from gradproof.symbolic.catalogue.evidence import Evidence, apart, at, at_least, at_most, distance, holds, same
from gradproof.symbolic.catalogue.losses import KL, SMOOTHED_BATCH, SMOOTHED_BATCH_SHAPES
from gradproof.symbolic.catalogue.normalisation import LAYERNORM, LAYERNORM_SHAPES
from gradproof.symbolic.catalogue.optimisation import ADAM_SHAPES, ADAM_STEP
from gradproof.symbolic.errors import GradproofError

ADAM = {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-8, "t": 1, "m_0": [0], "v_0": [0]}
BATCH = {"l": [[2, 1, 0], [0, 1, 2], [1, 1, 1]], "y": [0, 2, 1], "keep": [1, 1, 0], "epsilon": 0.1}


NORMALISED = {"epsilon": 1e-5, "gamma": [1, 1, 1, 1], "beta": [0, 0, 0, 0]}


def normalised(x: list, wrt: tuple = ()) -> dict:
    return at(LAYERNORM + ("; L = y[0]" if wrt else ""), LAYERNORM_SHAPES, {**NORMALISED, "x": x}, wrt)


def rows_of_a_table() -> list:
    lookup = get("embedding.lookup")
    given = {"E": [[0, 0]] * 3, "w": [1, 1, 2], "G": [[1, 2], [3, 4], [5, 6]]}
    return at(f"{lookup.expression}; L = sum(G*X)", {**lookup.shapes, "G": "n,d"}, given, ["E"])["E_bar"]


def recurrence() -> float:
    text, shapes = "h[0] = 0; h[t+1] = w*h[t] + u*x[t]; h[n]", {"w": "", "u": "", "x": "n"}
    return at(text, shapes, {"w": 0.5, "u": 1, "x": [1, 1, 1]}, ["w"])["w_bar"]


def smoothing() -> dict:
    return at(SMOOTHED_BATCH, SMOOTHED_BATCH_SHAPES, BATCH, ["l"])


def adam(theta: float, g: float, eta: float) -> float:
    return at(ADAM_STEP, ADAM_SHAPES, {**ADAM, "theta": [theta], "g": [g], "eta": eta})["value"][0]


def divergence(p: list, q: list) -> float:
    return at(KL, {"p": "n", "q": "n"}, {"p": p, "q": q})["value"]


def kept(p: list, threshold: float) -> int:
    return int(np.isfinite(top_p_filter(np.log(p), threshold)).sum())


FACTS = {
    "log_softmax, cotangent (1, 1)": (
        lambda: at("sum(G*log_softmax(l))", {"l": "n", "G": "n"}, {"l": [0.1, 0.9], "G": [1, 1]}, ["l"])["l_bar"],
        [0.3799, -0.3799],
        5e-5,
    ),
    "label smoothing, an ignored row": (lambda: smoothing()["value"], 0.5076059644, 5e-11),
    "the ignored row's gradient": (lambda: smoothing()["l_bar"][2], [0.0, 0.0, 0.0], 0.0),
    "Adam at a tiny gradient": (lambda: -adam(0.0, 1e-8, 1e-3), 5.0e-4, 1e-12),
    "Adam with L2 in the gradient": (lambda: adam(1.0, 0.1 * 1.0, 0.01), 0.9900, 1e-8),
    "AdamW": (lambda: adam(1.0, 0.0, 0.01) - 0.01 * 0.1 * 1.0, 0.9990, 1e-12),
    "KL": (lambda: divergence([0.9, 0.1], [0.5, 0.5]), 0.36806, 5e-6),
    "KL the other way round": (lambda: divergence([0.5, 0.5], [0.9, 0.1]), 0.51083, 5e-6),
    "top-p .9": (lambda: kept([0.5, 0.41, 0.09], 0.9), 2, 0.0),
    "top-p .7": (lambda: kept([0.4, 0.3, 0.2, 0.1], 0.7), 2, 0.0),
    "LayerNorm of (1,2,3,4)": (
        lambda: normalised([1, 2, 3, 4])["value"],
        [-1.34163542, -0.44721181, 0.44721181, 1.34163542],
        5e-9,
    ),
    "LayerNorm's gradient at a constant row": (
        lambda: normalised([5, 5, 5, 5], ("x",))["x_bar"],
        [237.17, -79.06, -79.06, -79.06],
        5e-3,
    ),
    "a scalar recurrence": (recurrence, 2.0, 0.0),
    "a lookup": (rows_of_a_table, [[0, 0], [4, 6], [5, 6]], 0.0),
    "a sinusoid": (lambda: sinusoids(1, 4, start=1)[0].tolist(), [0.84147, 0.54030, 0.0099998, 0.99995], 5e-6),
    "clipping": (lambda: clip({"W": np.full(100, 1e20, np.float32)}, 2.0)[0]["W"].tolist(), [0.2] * 100, 1e-7),
    "BLEU": (lambda: bleu([["yes"]], [[["no"]]]).score, 0.0, 0.0),
    "a constant tensor": (lambda: quantise(np.full((2, 3), 0.1)).dequantise().tolist(), [[0.1] * 3] * 2, 0.0),
}


@pytest.mark.parametrize("fact", FACTS)
def test_fact(fact: str) -> None:
    compute, expected, tolerance = FACTS[fact]
    assert distance(compute(), expected) <= tolerance


def test_clipping_by_torch_loses_everything() -> None:
    """Its norm is accumulated in float32 and overflows; ours is not. An inf or NaN entry is an error."""
    torch = pytest.importorskip("torch")
    weight = torch.nn.Parameter(torch.zeros(100, dtype=torch.float32))
    weight.grad = torch.full((100,), 1e20, dtype=torch.float32)
    torch.nn.utils.clip_grad_norm_([weight], 2.0)
    assert weight.grad.abs().max() == 0
    for bad in (math.inf, math.nan):
        with pytest.raises(GradproofError):
            clip({"W": np.array([1.0, bad])}, 2.0)


def test_torchs_divisor_is_not_the_formulas() -> None:
    """‖(3, 4)‖ = 5 clipped to 1: the formula gives (0.6, 0.8); torch divides by 5 + 1e−6."""
    torch = pytest.importorskip("torch")
    weight = torch.nn.Parameter(torch.zeros(2, dtype=torch.float64))
    weight.grad = torch.tensor([3.0, 4.0], dtype=torch.float64)
    torch.nn.utils.clip_grad_norm_([weight], 1.0)
    assert distance(weight.grad.tolist(), [3 / 5.000001, 4 / 5.000001]) <= 1e-15
    ours = clip({"W": np.array([3.0, 4.0])}, 1.0)[0]["W"]
    assert distance(ours.tolist(), [0.6, 0.8]) <= 1e-15
    assert distance(ours.tolist(), weight.grad.tolist()) > 1e-7


def test_hessian_of_the_tiny_model_against_torch() -> None:
    torch = pytest.importorskip("torch")
    from gradproof.models.training import tiny
    from gradproof.numeric.oracles import find

    start = {name: torch.tensor(value) for name, value in tiny.start().items()}
    sizes = [start[name].numel() for name in tiny.NAMES]
    data = {name: torch.tensor(value) for name, value in tiny.DATA.items()}
    forward = find("tiny_model.gradients")
    assert forward is not None

    def loss(flat):
        parts = torch.split(flat, sizes)
        return forward(**data, **{n: part.reshape(start[n].shape) for n, part in zip(tiny.NAMES, parts, strict=True)})

    flat = torch.cat([start[name].flatten() for name in tiny.NAMES])
    theirs = torch.autograd.functional.hessian(loss, flat).numpy()
    assert np.abs(tiny_hessian() - theirs).max() < 1e-8
    assert np.linalg.eigvalsh(theirs)[0] < -0.1


ROWS = [
    (same("", 1.0, 1.0), True),
    (same("", [1.0, 2.0], [1.0, 2.1], 0.05), False),
    (same("", math.nan, 1.0), False),
    (apart("", 1.0, 1.2, 0.1), True),
    (apart("", 1.0, 1.05, 0.1), False),
    (at_most("", 1.0, 1.0), True),
    (at_most("", 1.1, 1.0), False),
    (at_least("", 0.9, 1.0), False),
    (at_least("", math.nan, 1.0), False),
    (holds("", False), False),
    (holds("", True, "why"), True),
]


@pytest.mark.parametrize("row, passed", ROWS)
def test_rows(row: Evidence, passed: bool) -> None:
    assert row.passed is passed and ("FAILED" in str(row)) is not passed


ROOT = Path(__file__).resolve().parents[3]
EVIDENCE = [*sorted((ROOT / "models/evidence").glob("*.py")), *sorted((ROOT / "models/experiments").glob("*.py"))]


@pytest.mark.parametrize("path", EVIDENCE, ids=lambda path: path.stem)
def test_a_row_of_evidence_is_computed(path: Path) -> None:
    """What a row compares is no literal: `holds("…", True)` would be a claim, not evidence."""
    rows = ("same", "apart", "at_most", "at_least", "holds")
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in rows:
            assert any(isinstance(part, ast.Name) for part in ast.walk(node.args[1])), ast.unparse(node)
