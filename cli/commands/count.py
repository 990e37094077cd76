"""`gradproof count`."""

from __future__ import annotations

import click

from gradproof.cli.commands.inputs import Formula, dtype_option, formula
from gradproof.cli.output.console import emit_json
from gradproof.cli.output.words import phrased, word
from gradproof.symbolic.phrases import phrase

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
@dtype_option
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_context
def count_command(
    ctx: click.Context,
    expression: str,
    declarations: tuple[str, ...],
    at: tuple[str, ...],
    names: str | None,
    dtype: str,
    as_json: bool,
) -> None:
    """Count parameters, operations and bytes from the equations themselves.

    An operation is an addition, a multiplication, a division, or a function (exp, √, a comparison of values) of one
    entry; a sum of n terms is n additions. What stands in several places is computed once, sums of products are taken
    two factors at a time in the cheapest order, a running sum costs one addition an entry. Index arithmetic and lookups
    are free, and so are the shifts that keep exponentials from overflowing. Bytes: every equation reads each entry that
    it needs once and writes its result once, entries of the given type; parts without a name stay in the cache.

    \b
    gradproof count mha --at d_model=512,h=8
    gradproof count mha.output --at d=512,h=8
    gradproof count "X @ W" X:n,d W:d,k --parameters W
    """
    from gradproof.symbolic.counting import BYTES, cost, order, parameters, size_text, with_sizes
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
    spent = cost(system, None, (), BYTES[dtype])
    rows: dict[str, str] = {
        phrase("entries of {}", name): size_text(parameters(system, [name], values)) for name in system.inputs
    }
    rows |= (
        {phrase("parameters ({})", ", ".join(chosen)): size_text(parameters(system, chosen, values))} if chosen else {}
    )
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
