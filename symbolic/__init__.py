"""What is true: equations, calculus, textbook form, the expression language, the catalogue, the judge.

>>> d = derive("sum(softmax(z) * c)", shapes={"z": "n", "c": "n"}, wrt="z")
>>> print(d.gradients["z"])
P ⊙ (c − Pᵀc)
"""

from gradproof.symbolic import catalogue
from gradproof.symbolic.checking.check import Verdict, check
from gradproof.symbolic.derive import derive
from gradproof.symbolic.deriving.derivation import Derivation
from gradproof.symbolic.errors import GradproofError

__all__ = ["Derivation", "GradproofError", "Verdict", "catalogue", "check", "derive"]
