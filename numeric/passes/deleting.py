"""Large arrays that no equation names are deleted behind the last statement that reads them, unless the end is near."""

from __future__ import annotations

from dataclasses import replace

from gradproof.numeric.lowering.program import Assign, Delete, Program, Statement, arrays_in, entries, nodes_of, walk


def with_deletions(program: Program) -> Program:
    found = entries(program.statements)
    last: dict[str, int] = {}
    large = set()
    for position, entry in enumerate(found):
        for statement in walk(entry):
            for name in arrays_in(*nodes_of(statement)):
                last[name] = position
            if isinstance(statement, Assign) and statement.whole and statement.value.rank >= 2:
                large.add(statement.name)
                last.setdefault(statement.name, position)
    doomed: dict[int, list[str]] = {}
    for name in sorted(program.temporaries & large):
        if last[name] < len(found) - 2:
            doomed.setdefault(last[name], []).append(name)
    statements: list[Statement] = []
    for position, entry in enumerate(found):
        statements += entry
        if position in doomed:
            statements.append(Delete(tuple(doomed[position])))
    return replace(program, statements=tuple(statements))
