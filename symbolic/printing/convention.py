"""How the derivative by a variable with declared properties is meant, in words."""

from __future__ import annotations

from gradproof.symbolic.equations.properties import PROPERTIES
from gradproof.symbolic.equations.roles import Kind, Role
from gradproof.symbolic.equations.system import Array
from gradproof.symbolic.printing.text import plain_name

CONVENTION = {
    "en": "{name} is {what}; the derivative is that of the formula with all entries of {name} free:"
    " dL = Σ {bar} · d{name} for every change d{name} that keeps {name} {what}",
    "zh": "{name} 具有性质 {what}；这里的导数把 {name} 的所有元素视为独立变量："
    "对任何保持该性质的 d{name}，dL = Σ {bar} · d{name}",
}


def convention(array: Array, lang: str = "en") -> str:
    """How the derivative by an array with declared properties is meant; empty without any.

    >>> from gradproof.symbolic.equations.system import Array
    >>> convention(Array("S", properties=frozenset({"symmetric"})))
    'S is symmetric; the derivative is that of the formula with all entries of S free: dL = Σ S̄ · dS for every ...'
    """
    known = sorted(array.properties & PROPERTIES["all"])
    name, bar = plain_name(array.name)[0], plain_name("", Role(Kind.ADJOINT, array.name))[0]
    return CONVENTION[lang].format(name=name, bar=bar, what=" and ".join(known)) if known else ""
