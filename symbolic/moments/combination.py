"""Functions of one sum of normal entries: Σ c_i x_i is normal, with mean 0 if the entries have mean 0."""

from __future__ import annotations

from sympy import Add, Expr, Mul, S

from gradproof.symbolic.equations.expr import Access, Compare, names, sum_
from gradproof.symbolic.equations.functions import absolute, relu
from gradproof.symbolic.equations.laws import Law
from gradproof.symbolic.moments.expansion import expanded, readers, terms
from gradproof.symbolic.moments.integrability import linear
from gradproof.symbolic.moments.integral import Integral, Unsupported
from gradproof.symbolic.moments.one_entry import function_moment

WHOLE = Access("Σ")  # the sum, as if it were one entry


def of_sums(name: str, expr: Expr, integral: Integral) -> Expr:
    """E over a normal array that is read in relu, |·| and comparisons of one sum of its entries a term.

    Raises Unsupported where it is read otherwise.
    """
    found = []
    for term in terms(expr, readers([name]), integral.scope):
        own = [factor for factor in term.factors if name in names(factor)]
        rest = Mul(*(factor for factor in term.factors if factor not in own))
        value = of_one_sum(name, Mul(*own), integral) if own else S.One
        found.append(sum_(rest * value, term.axes))
    return Add(*found)


def of_one_sum(name: str, function: Expr, integral: Integral) -> Expr:
    """E f(Σ c_i x_i) from the variance of the sum."""
    law = integral.laws[name]
    inside = {abs_sign(node.args[0]) for node in function.atoms(relu, absolute) if name in names(node)}
    inside |= {abs_sign(side) for node in function.atoms(Compare) for side in node.sides if name in names(side)}
    if law.family != "normal" or not law.centred or len(inside) != 1 or not linear(total := inside.pop(), name):
        raise Unsupported(function, f"it reads several entries of {name} at once")
    if integral.tidy(integral.over(name, total)) != 0:
        raise Unsupported(function, f"its sum of entries of {name} has another mean than 0")
    variance = integral.tidy(integral.over(name, expanded(total * total, [name], integral.scope)))
    if function.atoms(Compare) and not variance.is_positive:
        raise Unsupported(function, "all coefficients of the sum may be 0, and then it is no normal value")
    of_total = function.xreplace({total: WHOLE, -total: -WHOLE})
    value = function_moment(Law(WHOLE.name, "normal", (S.Zero, variance)), of_total, WHOLE)
    if value is None or name in names(of_total):
        raise Unsupported(function, f"no rule covers this function of a sum of entries of {name}")
    integral.needed[name].functions = True
    return value


def abs_sign(expr: Expr) -> Expr:
    """One of an expression and its negative."""
    return -expr if expr.could_extract_minus_sign() else expr
