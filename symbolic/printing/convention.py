"""How a derivative is meant, in words: by a variable with declared properties, and for which sizes it is printed."""

from __future__ import annotations

from collections.abc import Iterable

from sympy import Expr

from gradproof.symbolic.equations.expr import Reduce, letters, nonnegative
from gradproof.symbolic.equations.properties import PROPERTIES
from gradproof.symbolic.equations.roles import Kind, Role
from gradproof.symbolic.equations.system import Array, Equation
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


RANGES = {
    "en": "printed for {what}; a range that would be shorter than nothing is empty, and its count 0",
    "zh": "以上写法适用于 {what}；长度为负的范围视为空，其个数为 0",
}


def ranges(equations: Iterable[Equation], lang: str = "en") -> str:
    """For which sizes n − 2 stands for the number of values of a range; empty where nothing is counted so."""
    nodes = {node for equation in equations for node in equation.body.atoms(Reduce)}
    lengths = {
        (hi - lo).expand()
        for node in nodes
        for letter, lo, hi in node.axes
        if node.op == "sum" and not letters(hi - lo) and letter not in letters(node.body)
    }
    found = sorted((length for length in lengths if not nonnegative(length)), key=str)
    return RANGES[lang].format(what=" and ".join(map(at_least, found))) if found else ""


def at_least(length: Expr) -> str:
    """That a length is not negative, as a person writes it.

    >>> from gradproof.symbolic.equations.expr import Size
    >>> at_least(Size("n") - 2)
    'n ≥ 2'
    """
    number, rest = length.as_coeff_Add()
    return f"{rest} ≥ {-number}" if not rest.could_extract_minus_sign() else f"{-rest} ≤ {number}"
