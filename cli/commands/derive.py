"""`gradproof derive`: a derivation in every form in which someone may want it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from gradproof.cli.commands.inputs import (
    Formula,
    dtype_option,
    formula,
    output_option,
    syntax_option,
    variables,
    wrt_option,
)
from gradproof.cli.output.console import emit, emit_json
from gradproof.numeric.backends import BACKENDS
from gradproof.symbolic.catalogue import Entry
from gradproof.symbolic.deriving.derivation import Derivation
from gradproof.symbolic.phrases import phrase

FORMATS = ("text", "latex", "markdown", "json", *BACKENDS)


@click.command("derive")
@click.argument("expression", metavar="(ID | EXPR)")
@click.argument("declarations", metavar="[NAME:SIZES …]", nargs=-1)
@wrt_option
@click.option("--order", type=click.IntRange(1, 2), default=1, help="2: the Hessian of a scalar.")
@click.option("--cotangent", metavar="NAME", help="The adjoint of a non-scalar for a given cotangent.")
@click.option("--jacobian", is_flag=True, help="The Jacobian of a non-scalar.")
@click.option("--jvp", metavar="A=dA,…", help="The change of the value along changes of variables.")
@click.option("--hvp", metavar="VECTOR", help="The Hessian times a vector of this name.")
@click.option("--steps/--no-steps", default=True, help="Show every step and how it was checked.")
@click.option("--example", is_flag=True, help="Add a worked example in small numbers.")
@click.option("--form", type=click.Choice(["matrix", "index"]), help="Matrix form or index form.")
@click.option("--layout", type=click.Choice(["denominator", "numerator"]), help="Layout of derivatives.")
@click.option("--format", "format_", type=click.Choice(FORMATS), default="text", help="Format of the result.")
@dtype_option
@syntax_option
@output_option
@click.pass_context
def derive_command(ctx: click.Context, expression: str, declarations: tuple[str, ...], **options: Any) -> None:
    """Derive a documented formula, or your own expression with its arrays.

    \b
    gradproof derive attention.block_backward
    gradproof derive "sum((X @ W - Y)**2)" X:n,d W:d,k Y:n,k --wrt W
    gradproof derive "softmax(z)" z:n --jacobian

    The operations and bytes that are printed are those of `gradproof count` (its help says what they are).
    """
    from gradproof.cli.output import proofs, report

    lang = ctx.obj["lang"]
    found = formula(expression, declarations, options.pop("syntax"))
    output, format_, steps, example = (options.pop(k) for k in ("output", "format_", "steps", "example"))
    form, dtype = options.pop("form"), options.pop("dtype")
    wrt = variables(options.pop("wrt"))
    stated = None
    if found.entry is not None and format_ in ("text", "json") and states(found.entry, wrt, options):
        stated = proofs.proofs(found.entry, lang)
        if not found.entry.expression:
            return emit_json(stated, output) if format_ == "json" else emit(proofs.as_text(stated, lang, steps), output)
    derivation = derived(found, wrt, lang, **options)
    is_jacobian = derivation.is_jacobian
    layout = options["layout"] or ("numerator" if is_jacobian else "denominator")
    other = ""
    if is_jacobian and format_ in ("text", "markdown") and max(len(g.shape) for g in derivation.gradients.values()) < 3:
        turned = {"numerator": "denominator", "denominator": "numerator"}[layout]
        same = derived(found, wrt, lang, **{**options, "layout": turned})
        other = phrase("in {} layout: {}", turned, "; ".join(same.line(equation, form) for equation in same.results))
    result = report.Report(derivation, found.entry, form, layout, steps, example, lang, other, dtype)
    if format_ == "json":
        emit_json({**report.as_json(result), **(stated or {})}, output)
    elif stated is not None and steps:
        emit("\n".join([report.as_text(result), *proofs.stated_lines(stated, lang, steps)]), output)
    elif format_ in BACKENDS:
        emit(report.as_code(derivation, format_), output)
    else:
        emit(
            {"text": report.as_text, "latex": report.as_latex, "markdown": report.as_markdown}[format_](result), output
        )


def states(entry: Entry, wrt: Sequence[str] | None, options: Mapping[str, Any]) -> bool:
    """Whether an entry is shown as documented and states identities or moments."""
    asked = wrt is not None or any(options[key] for key in ("cotangent", "jacobian", "jvp", "hvp"))
    return bool(entry.identities or entry.moments) and not asked and options["order"] == 1


def derived(
    found: Formula,
    wrt: Sequence[str] | None,
    lang: str,
    order: int = 1,
    cotangent: str | None = None,
    jacobian: bool = False,
    jvp: str | None = None,
    hvp: str | None = None,
    layout: str | None = None,
) -> Derivation:
    """The derivation that the options ask for."""
    from gradproof.symbolic.derive import derive

    what, shapes = (found.entry.id, None) if found.entry else (found.program, found.declarations)
    assert what is not None
    return derive(
        what,
        shapes,
        wrt,
        cotangent,
        lang=lang,
        order=order,
        jacobian=jacobian,
        jvp=_directions(jvp) if jvp else None,
        hvp=hvp,
        layout=layout,
    )


def _directions(text: str) -> dict[str, str]:
    """Read `X=dX,W=dW`; a bare `X` moves along `dX`."""
    found = {}
    for item in text.split(","):
        name, _, direction = item.strip().partition("=")
        if not name.isidentifier() or not (direction or f"d{name}").isidentifier():
            raise click.UsageError(f"--jvp reads NAME=DIRECTION pairs, not {item!r}")
        found[name] = direction or f"d{name}"
    return found
