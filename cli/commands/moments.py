"""`gradproof variance` and `gradproof expectation`."""

from __future__ import annotations

from typing import Any

import click

from gradproof.cli.commands.inputs import formula, output_option
from gradproof.cli.output.console import emit, emit_json
from gradproof.cli.output.words import phrased, rule, word
from gradproof.symbolic.phrases import phrase

FORMAT = click.option(
    "--format", "format_", type=click.Choice(["text", "latex", "json"]), default="text", help="Format."
)
RANDOM = frozenset({"rademacher"})  # distributions without a number to declare
STEPS = click.option("--steps/--no-steps", default=True, help="Show every step and how it was checked.")


def _moment(kind: str) -> click.Command:
    @click.command(kind)
    @click.argument("expression", metavar="EXPR")
    @click.argument("declarations", metavar="NAME:SIZES …", nargs=-1)
    @FORMAT
    @STEPS
    @output_option
    @click.pass_context
    def command(
        ctx: click.Context,
        expression: str,
        declarations: tuple[str, ...],
        format_: str,
        steps: bool,
        output: str | None,
    ) -> None:
        from gradproof.symbolic import moments

        found = formula(expression, declarations)
        if found.program is None:
            raise click.UsageError(f"{kind} takes an expression with its arrays")
        if not any(set(d.options) - {"index"} or set(d.properties) & RANDOM for d in found.declarations):
            names = ", ".join(f"{d.name}:…:iid=0,1" for d in found.declarations) or "q:d:iid=0,1"
            raise click.UsageError(f"nothing is random here: declare a distribution, as in {names}")
        result = getattr(moments, kind)(found.program, found.declarations, ctx.obj["lang"])
        if format_ == "json":
            emit_json(_document(result, steps), output)
        elif format_ == "latex":
            emit(result.latex, output)
        else:
            lang = ctx.obj["lang"]
            lines = [
                str(result),
                "",
                *(phrased(phrase("assumed: {}", assumption), lang) for assumption in result.assumptions),
            ]
            lines += ["", word("steps", lang).lower()] if steps else []
            for number, step in enumerate(result.steps if steps else (), 1):
                lines += [f"{number:>3}. {rule(step.rule, lang)}{word('colon', lang)}{step.reason}"]
                lines += [f"    {step.line(step.after)}", f"    {phrased(phrase('checked: {}', step.checked), lang)}"]
            emit("\n".join(lines), output)

    command.help = (
        f"The {kind} of an expression of random arrays.\n\n\b\n"
        f'gradproof {kind} "sum[l](q[l]*k[l])" q:d:iid=0,1 k:d:iid=0,1'
    )
    return command


def _document(result: Any, steps: bool) -> dict[str, Any]:
    return {
        "value": result.text,
        "latex": result.latex,
        "assumptions": list(result.assumptions),
        "steps": [step.as_dict() for step in result.steps] if steps else [],
    }


variance_command = _moment("variance")
expectation_command = _moment("expectation")
