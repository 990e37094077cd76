"""Expectation, variance and covariance of an expression under declared distributions, with checked steps.

>>> found = variance("sum[l](q[l]*k[l])", {"q": "d:iid=mu_q,sigma_q**2", "k": "d:iid=mu_k,sigma_k**2"})
>>> print(found)
Var(kᵀq) = d (μ_k² σ_q² + μ_q² σ_k² + σ_k² σ_q²)
>>> variance("q @ k / sqrt(d)", {"q": "d:iid=0,1", "k": "d:iid=0,1"}).value
1

Arrays without a distribution are constants. Everything is derived by three rules: the expectation is linear, that of a
product of independent factors is the product of the expectations, and equal indices give the higher moments of one
entry (see `integral.py`). Each step is checked by averaging over all outcomes of small discrete distributions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gradproof.symbolic.equations.system import System
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.language.syntax import Declaration, Program
from gradproof.symbolic.moments.derivation import Work
from gradproof.symbolic.moments.result import MomentResult, MomentStep

__all__ = ["MomentResult", "MomentStep", "covariance", "expectation", "in_terms_of", "variance"]

Shapes = Mapping[str, object] | Sequence[Declaration]


def expectation(expression: str | Program | System, shapes: Shapes | None = None, lang: str = "en") -> MomentResult:
    """E of an expression, entry by entry.

    >>> print(expectation("sum[s=0:t]((1-b)*b**(t-1-s)*g[s])", {"g": "t:iid=mu,sigma**2", "b": ""}).value)
    mu*(1 - b**t)
    """
    work = Work([_system(expression, shapes)], lang)
    return work.result("expectation")


def variance(expression: str | Program | System, shapes: Shapes | None = None, lang: str = "en") -> MomentResult:
    """The variance of an expression, entry by entry.

    >>> shapes = {"W": "m,n:iid=0,s_w**2", "x": "n:iid=mu_x,s_x**2"}
    >>> print(variance("W @ x", shapes).value)
    n*s_w**2*(mu_x**2 + s_x**2)
    """
    work = Work([_system(expression, shapes)], lang)
    return work.result("variance")


def covariance(
    first: str | Program | System, second: str | Program | System, shapes: Shapes | None = None, lang: str = "en"
) -> MomentResult:
    """The covariance of every entry of one expression with every entry of another.

    >>> print(covariance("W @ x", "W @ y", {"W": "m,n:iid=0,v", "x": "n", "y": "n"}).value)
    v*[o0 == o1]*sum[b1=0:n](x[b1]*y[b1])
    """
    work = Work([_system(first, shapes), _system(second, shapes)], lang)
    return work.result("covariance")


def in_terms_of(
    expression: str | Program | System, kept: str | Sequence[str], shapes: Shapes | None = None, lang: str = "en"
) -> MomentResult:
    """A deterministic expression written in certain of its own intermediate values, as the moments of LayerNorm in v.

    >>> print(in_terms_of("mean(layernorm(x, eps=eps)**2)", "v", {"x": "n", "eps": ""}).value)
    v/(eps + v)
    """
    work = Work([_system(expression, shapes)], lang)
    return work.rewritten([kept] if isinstance(kept, str) else list(kept))


def _system(expression: str | Program | System, shapes: Shapes | None) -> System:
    return expression if isinstance(expression, System) else build(expression, shapes or {})
