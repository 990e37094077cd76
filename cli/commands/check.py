"""`gradproof check`: is the formula that I wrote down right?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gradproof.cli.commands.inputs import formula, numpy_text, syntax_option, variables, wrt_option
from gradproof.cli.output.console import emit_json

if TYPE_CHECKING:
    from gradproof.symbolic.checking.check import Verdict


@click.command("check")
@click.argument("expression", metavar="EXPR")
@click.argument("declarations", metavar="NAME:SIZES …", nargs=-1)
@wrt_option
@click.option("--claim", metavar="EXPR", help="The derivative as you wrote it.")
@click.option("--let", "lets", multiple=True, metavar='A="EXPR"', help="Name an intermediate that the claim uses.")
@click.option("--cotangent", metavar="NAME", help="The claim is the adjoint for this cotangent.")
@click.option("--order", type=click.IntRange(1, 2), default=1, help="2: the claim is a Hessian.")
@click.option("--layout", type=click.Choice(["denominator", "numerator"]), help="Layout of the claim.")
@click.option("--file", "path", metavar="FILE.py", help="Check a backward written in Python instead (runs that file).")
@click.option("--strict", is_flag=True, help="Exit 1 if the claim is right under a condition only, such as x > 0.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@syntax_option
def check_command(
    expression: str,
    declarations: tuple[str, ...],
    wrt: tuple[str, ...],
    claim: str | None,
    lets: tuple[str, ...],
    path: str | None,
    as_json: bool,
    strict: bool,
    syntax: str,
    **options: Any,
) -> int:
    """Check a derivative that you wrote: exit 0 if it is right, 1 if it is refuted, 3 if undecided.

    \b
    gradproof check "sum(x**2)" x:n --wrt x --claim "2*x"
    gradproof check "sum(tanh(x))" x:n --file my_backward.py
    """
    if (claim is None) == (path is None):
        raise click.UsageError('give the formula to check: --claim "2*x", or --file my.py')
    found = formula(expression, declarations, syntax)
    if found.program is None:
        raise click.UsageError(
            "check takes an expression with its arrays; documented claims are checked by `gradproof audit`"
        )
    names = variables(wrt)
    if path is not None:
        from gradproof.numeric.check_file import check_file

        given = {"--let": lets, "--layout": options["layout"], "--cotangent": options["cotangent"]}
        unread = [name for name, value in {**given, "--order": options["order"] > 1}.items() if value]
        if unread:
            raise click.UsageError(f"--file compares first derivatives under a random cotangent: leave out {unread[0]}")
        click.echo(f"running {path}", err=True)
        return _finish(check_file(path, found.program, found.declarations, names), as_json, strict)
    if names is None or len(names) > options["order"]:
        raise click.UsageError("name the one variable that the claim differentiates by: --wrt x (two with --order 2)")
    from gradproof.symbolic.checking.check import check

    let = {name: numpy_text(value, found.declarations, syntax) for name, value in map(_named, lets)}
    claim = numpy_text(str(claim), found.declarations, syntax)
    layout = options.pop("layout")
    if layout is not None:
        options["layout"] = layout
    return _finish(
        check(found.program, found.declarations, names[0] if len(names) == 1 else names, claim, let=let, **options),
        as_json,
        strict,
    )


def _named(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip().isidentifier():
        raise click.UsageError(f'--let reads NAME="EXPR", not {text!r}')
    return name.strip(), value.strip()


def _finish(verdict: Verdict, as_json: bool, strict: bool) -> int:
    if as_json:
        emit_json(verdict.as_dict())
    else:
        click.echo(str(verdict))
    return 1 if strict and verdict.conditions else verdict.exit_code
