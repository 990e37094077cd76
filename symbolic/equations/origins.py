"""Where an equation came from: what its body was built as, which rules and printers reason from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sympy import Expr

from gradproof.symbolic.equations.expr import Index


@dataclass(frozen=True)
class Softmax:
    """exp(x) / Σ exp(x) of an argument x, over the letter `over` of the left side; softmax is over the last axis.

    >>> from gradproof.symbolic.equations.expr import Access
    >>> i, j = Index("i"), Index("j")
    >>> Softmax(Access("S", i, j), j).xreplace({j: Index("k")})
    Softmax(argument=S[i, k], over=k)
    """

    argument: Expr
    over: Expr

    def xreplace(self, renamed: Mapping[Index, Expr]) -> Softmax:
        """The same with other letters."""
        return replace(self, argument=self.argument.xreplace(renamed), over=self.over.xreplace(renamed))
