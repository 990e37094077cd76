"""Derive: from an expression, or a documented formula, to its derivative in textbook form.

>>> d = derive("sum((X @ W - Y)**2)", shapes={"X": "n,d", "W": "d,k", "Y": "n,k"}, wrt=["W"])
>>> print(d.gradients["W"])
2 Xᵀ(XW − Y)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gradproof.symbolic.catalogue import get
from gradproof.symbolic.catalogue.derivation import derive_entry, documented
from gradproof.symbolic.deriving import products
from gradproof.symbolic.deriving.derivation import Derivation, derive_system
from gradproof.symbolic.errors import ExpressionError
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.language.syntax import Declaration, Program, parse


def derive(
    expression: str | Program,
    shapes: Mapping[str, object] | Sequence[Declaration] | None = None,
    wrt: str | Sequence[str] | None = None,
    cotangent: str | None = None,
    keep: Iterable[str] = (),
    lang: str = "en",
    *,
    order: int = 1,
    jacobian: bool = False,
    jvp: Mapping[str, str] | None = None,
    hvp: str | None = None,
    layout: str | None = None,
) -> Derivation:
    """The gradient of an expression with respect to the variables in `wrt` (all that are no integers, by default).

    Each gradient has the shape of its variable (denominator layout). A non-scalar expression needs `cotangent`, the
    name of an array of its shape; the result is then the adjoint Σ cotangent · ∂(expression). `keep` names
    intermediates whose adjoints stay visible where they would be substituted. Without shapes, `expression` is the
    identifier of a documented formula, which is derived as it is documented unless something else is asked for.

    At most one of these asks for something else: `order=2` the Hessian of a scalar, `jacobian=True` the Jacobian entry
    by entry, `jvp={"W": "dW"}` the change of the output along given changes of variables, `hvp="v"` the Hessian times a
    vector. `layout` is "numerator" (the default for Jacobians) or "denominator" (the default for gradients).

    Raises ExpressionError for input that cannot be used, StepError where a step does not hold.

    >>> print(derive("sum(x**3)", {"x": "n"}, hvp="v"))
    Hv = 6 v ⊙ x
    """
    asked = {"jacobian": jacobian, "jvp": jvp, "hvp": hvp, "order=2": order == 2}
    chosen = [name for name, value in asked.items() if value]
    if len(chosen) > 1:
        raise ExpressionError(f"{' and '.join(chosen)} ask for different things; choose one")
    if shapes is None:
        entry = get(str(expression))
        if not chosen and wrt is None and cotangent is None:
            return derive_entry(entry, lang, layout or "numerator")
        program, system = documented(entry)
        wrt, cotangent = wrt or entry.wrt, cotangent or (None if chosen else entry.cotangent)
    else:
        program = parse(expression) if isinstance(expression, str) else expression
        keep = tuple(keep)
        system = build(program, shapes, keep)
    if jacobian:
        return products.jacobian(system, wrt, program, layout or "numerator", lang)
    if order == 2:
        return products.hessian(system, wrt, program, lang)
    if jvp:
        return products.jvp(system, jvp, program, lang)
    if hvp:
        variables = products.chosen_variables(system, wrt)
        if len(variables) != 1:
            raise ExpressionError(f"hvp needs exactly one variable, not {', '.join(variables)}: --wrt {variables[0]}")
        return products.hvp(system, variables[0], hvp, program, lang)
    gradient = derive_system(system, wrt, cotangent, keep, program, lang)
    return products.turned(gradient) if layout == "numerator" else gradient
