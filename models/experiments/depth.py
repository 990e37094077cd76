"""Pre-LN against Post-LN: the norm of the gradient in the first and last block at initialisation, over the depth."""

from __future__ import annotations

from gradproof.models.evidence.transformer import DEPTHS, gradient_norms, pre_vs_post
from gradproof.models.experiments import Experiment, concluded


def run() -> Experiment:
    checks = tuple(pre_vs_post())
    rows = tuple((float(d), *gradient_norms("pre", d), *gradient_norms("post", d)) for d in DEPTHS)
    right = "in the last block the gradient keeps its size under Post-LN and falls with the depth under Pre-LN"
    return Experiment(
        "Gradient norms of a stack of Transformer blocks",
        ("depth", "Pre-LN, first block", "Pre-LN, last block", "Post-LN, first block", "Post-LN, last block"),
        rows,
        concluded(checks, right, "no difference"),
        checks,
        True,
    )
