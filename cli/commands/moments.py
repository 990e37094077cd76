"""`gradproof variance`, `gradproof expectation` and `gradproof count`."""

from __future__ import annotations

from typing import Any

import click

from gradproof.cli.commands.inputs import Formula, formula, output_option
from gradproof.cli.output.console import emit, emit_json
from gradproof.cli.output.words import phrased, rule, word

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
            lines = [str(result), "", *(phrased(f"assumed: {assumption}", lang) for assumption in result.assumptions)]
            lines += ["", word("steps", lang).lower()] if steps else []
            for number, step in enumerate(result.steps if steps else (), 1):
                lines += [f"{number:>3}. {rule(step.rule, lang)}{word('colon', lang)}{step.reason}"]
                lines += [f"    {step.line(step.after)}", f"    {phrased(f'checked: {step.checked}', lang)}"]
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


# a layer's name → its entry, its parameters, and the sizes that follow from the others
LAYERS: dict[str, tuple[str, tuple[str, ...], dict[str, int | str]]] = {
    "attention": ("attention.block_backward", ("W_Q", "W_K", "W_V", "W_O"), {"d_k": "d", "d_v": "d"}),
    "mha": ("mha.output", ("W_Q", "W_K", "W_V", "W_O"), {"d_k": "d/h", "d_v": "d/h", "m": "n"}),
    "ffn": ("ffn.relu", ("W_1", "b_1", "W_2", "b_2"), {"d_ff": "4*d"}),
}


@click.command("count")
@click.argument("expression", metavar="(ID | EXPR)")
@click.argument("declarations", metavar="[NAME:SIZES …]", nargs=-1)
@click.option("--at", multiple=True, metavar="SIZE=VALUE,…", help="Values (or other sizes) for sizes: d=512,h=8.")
@click.option("--parameters", "names", metavar="A,B", help="Add up the entries of these inputs.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_context
def count_command(
    ctx: click.Context,
    expression: str,
    declarations: tuple[str, ...],
    at: tuple[str, ...],
    names: str | None,
    as_json: bool,
) -> None:
    """Count parameters and operations from the equations themselves.

    \b
    gradproof count mha --at d_model=512,h=8
    gradproof count mha.output --at d=512,h=8
    gradproof count "X @ W" X:n,d W:d,k --parameters W
    """
    from gradproof.symbolic.counting import cost, order, parameters, size_text, with_sizes
    from gradproof.symbolic.language.reader import build
    from gradproof.symbolic.language.syntax import parse

    layer, parts, assumed = LAYERS.get(expression, (expression, (), {}))
    found: Formula = formula(layer, declarations)
    if found.entry is not None:
        if not found.entry.expression:
            raise click.UsageError(f"{found.entry.id} states no equations to count")
        system = build(parse(found.entry.expression), dict(found.entry.shapes))
    else:
        assert found.program is not None
        system = build(found.program, found.declarations)
    values = dict(_sized(item) for group in at for item in group.split(",") if item.strip())
    sizes = [str(size) for size in system.sizes]
    if "d_model" in values and "d_model" not in sizes and "d" in sizes:
        values["d"] = values.pop("d_model")
    if unknown := [name for name in values if name not in sizes]:
        raise click.UsageError(f"there is no size {unknown[0]}; there are {', '.join(sizes) or 'none'}")
    values = {**assumed, **values}
    for name, size in ((name, with_sizes(symbol, values)) for name, symbol in zip(sizes, system.sizes, strict=True)):
        if size.is_number and not (size.is_Integer and size > 0):
            raise click.UsageError(f"a size is a whole number above 0, and {name} is {size} here")
    chosen = [name.strip() for name in names.split(",")] if names else list(parts)
    spent = cost(system, None, ())
    rows = {f"entries of {name}": size_text(parameters(system, [name], values)) for name in system.inputs}
    rows |= {f"parameters ({', '.join(chosen)})": size_text(parameters(system, chosen, values))} if chosen else {}
    operations = with_sizes(spent.flops, values)
    rows["operations"] = size_text(operations)
    rows |= {"order": order(operations)} if operations.free_symbols else {}
    rows["bytes read and written"] = size_text(with_sizes(spent.bytes, values))
    rows |= {"with": ", ".join(f"{name} = {value}" for name, value in values.items())} if assumed else {}
    if as_json:
        emit_json(rows)
    else:
        lang = ctx.obj["lang"]
        click.echo("\n".join(f"{phrased(label, lang)}{word('colon', lang)}{value}" for label, value in rows.items()))


def _sized(text: str) -> tuple[str, int | str]:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name.isidentifier() or not value:
        raise click.UsageError(f"--at reads SIZE=VALUE, not {text!r}")
    return name, int(value) if value.isdigit() else value
