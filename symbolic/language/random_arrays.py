"""Reading what a declaration such as `q:d:iid=0,1` or `z:n:normal=0,s**2` says of a random array."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from sympy import Expr

from gradproof.symbolic.equations.expr import Access, out_letters
from gradproof.symbolic.equations.laws import FAMILIES, Law
from gradproof.symbolic.equations.system import Array
from gradproof.symbolic.errors import ExpressionError, ShapeError

if TYPE_CHECKING:
    from gradproof.symbolic.language.builder import Builder
    from gradproof.symbolic.language.syntax import Declaration

LAWS = frozenset(FAMILIES)
OPTIONS = frozenset({*LAWS, "even", "kurt"})
SHARED = frozenset({"symmetric", "psd", "diagonal", "orthogonal", "simplex"})


def declared_law(builder: Builder, declaration: Declaration, number: Callable[[Builder, ast.expr], Expr]) -> Law | None:
    """The law of a declaration, None without one. All arrays and sizes are declared already.

    Raises ExpressionError where the properties contradict each other.
    """
    given = [name for name in declaration.properties if name in OPTIONS]
    families = [name for name in given if name in LAWS]
    text = declaration.text

    def fail(message: str, kind: type[ExpressionError] = ExpressionError) -> None:
        raise kind(message, text, 0, len(declaration.name))

    if not given:
        return None
    if len(families) != 1:
        what = " and ".join(families) or "no distribution"
        fail(f"{declaration.name} has {what}: write one of {', '.join(FAMILIES[name].written for name in FAMILIES)}")
    (family,) = families
    if len(given) > 1 and family not in ("iid", "independent"):
        fail(f"even and kurt= go with iid= or independent=; the moments of {family} are known")
    if clash := SHARED.intersection(declaration.properties):
        fail(
            f"the entries of a random array are independent: {declaration.name} cannot be {' and '.join(sorted(clash))}"
        )
    array = builder.arrays[declaration.name]
    if family == "categorical":
        chances = _probabilities(builder, declaration)
        return Law(array.name, family, (chances,), below=builder.arrays[chances.name].shape[0])
    given_values = declaration.options.get(family, ())
    parameters = tuple(_parameter(builder, node, array, family, text, number) for node in given_values)
    kurt = declaration.options.get("kurt")
    law = Law(array.name, family, parameters, "even" in given, number(builder, kurt[0]) if kurt else None)
    if any(parameter.is_finite is False for parameter in parameters):
        fail(f"the parameters of {declaration.name} are finite numbers")
    if family == "bernoulli" and (parameters[0].is_negative or (1 - parameters[0]).is_negative):
        fail(f"the probability that {declaration.name} is 1 lies between 0 and 1")
    if family == "uniform" and (parameters[1] - parameters[0]).is_negative:
        fail(f"{declaration.name} is uniform between two numbers: the lower one stands first")
    if law.variance.is_negative:
        fail(f"the variance of {declaration.name} is negative")
    if law.kurt is not None and law.kurt.is_number and law.kurt < 1:
        fail("kurt is the fourth central moment over the squared variance: it is at least 1")
    return law


def _parameter(
    builder: Builder,
    node: ast.expr,
    array: Array,
    family: str,
    text: str,
    number: Callable[[Builder, ast.expr], Expr],
) -> Expr:
    """A parameter: a number, symbols, or with `independent` an array that has one for every entry."""
    given = builder.arrays.get(node.id) if isinstance(node, ast.Name) else None
    if given is None or not given.rank:
        return number(builder, node)
    if family != "independent" or given.shape != array.shape:
        message = f"{given.name} has a value for every entry: write independent= and give it the shape of {array.name}"
        raise ShapeError(message, text, node.col_offset, node.end_col_offset)
    return Access(given.name, *out_letters(array.rank))


def _probabilities(builder: Builder, declaration: Declaration) -> Access:
    """The array of probabilities, as its entry at letter o0."""
    (node,) = declaration.options["categorical"]
    given = builder.arrays.get(node.id) if isinstance(node, ast.Name) else None
    if given is None or given.rank != 1 or "simplex" not in given.properties:
        message = "categorical= takes an array of probabilities that sum to 1, declared as p:V:simplex"
        raise ExpressionError(message, declaration.text, node.col_offset, node.end_col_offset)
    return Access(given.name, *out_letters(1))
