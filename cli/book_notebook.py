"""A book as a Jupyter notebook that derives, proves and checks everything anew when it is run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from gradproof.cli.book_web import md
from gradproof.cli.words import said, word
from gradproof.symbolic.catalogue import Entry

SETUP = """from gradproof.symbolic import check
from gradproof.symbolic.catalogue import get
from gradproof.symbolic.catalogue.derivation import derive_entry
from gradproof.symbolic.catalogue.evidence import rows
from gradproof.symbolic.catalogue.proof import derived_moment, prove"""

DERIVE = """derivation = derive_entry(entry{lang})
derivation"""
STEPS = """for step in derivation.steps:
    print(step)"""
# the generated code against differences of the generated forward pass, and against 40 digits
COMPARE = """from gradproof.numeric import crosscheck

report = crosscheck(derivation, against=("differences", "mpmath"))
print(report)
assert report.passed"""
IDENTITIES = """for identity in entry.identities:
    proof = prove(identity)
    print(f"{proof.verdict}: {identity.left}  =  {identity.right}")
    print(f"    {proof.how}")
    assert proof.verdict == identity.expected or (proof.verdict, identity.expected) == ("agrees", "proved")"""
CLAIMS = """for claim in entry.claims:
    found = check(
        claim.expression, claim.shapes, claim.wrt, claim.claim, cotangent=claim.cotangent, layout=claim.layout
    )
    print(f"{claim.says}\\n    {found.verdict}: {found.counterexample or found.how}")
    assert found.verdict == claim.expected or (found.verdict, claim.expected) == ("agrees", "proved")"""
MOMENTS = """for moment in entry.moments:
    value, right = derived_moment(moment)
    print(f"{moment.kind} of {moment.expression} = {value}")
    assert right"""
EVIDENCE = """for row in rows(entry):
    print(row)
    assert row.passed, row"""


def notebook(entries: Sequence[Entry], lang: str = "en", notes: str | None = None, evidence: bool = True) -> str:
    """The notebook as JSON text; `notes` is the file of a user's own entries."""
    cells = [new_markdown_cell(f"# {word('book', lang)}")] if len(entries) > 1 else []
    setup = SETUP
    if notes:
        setup += f"\nfrom gradproof.cli.notes import load\n\nload({str(Path(notes).resolve())!r})"
    cells.append(new_code_cell(setup))
    for entry in entries:
        title = entry.title_zh if lang == "zh" else entry.title
        note = entry.note_zh if lang == "zh" else entry.note
        head = f"## {md(title)}\n\n`{entry.id}` · {entry.source} · {said(entry.verdict, lang)}\n\n"
        head += f"{word('document', lang)}:\n\n" if entry.right else ""
        head += f"$$\n{entry.statement}\n$$\n\n"
        head += f"{word('right', lang)}:\n\n$$\n{entry.right}\n$$\n\n" if entry.right else ""
        cells += [new_markdown_cell((head + md(note)).strip()), new_code_cell(f'entry = get("{entry.id}")')]
        if entry.expression and entry.wrt:
            cells.append(new_code_cell(DERIVE.format(lang=', "zh"' if lang == "zh" else "")))
            cells.append(new_code_cell(STEPS))
            cells += [new_code_cell(COMPARE)] if entry.mode == "adjoint" else []
        wanted = [
            (entry.identities, IDENTITIES),
            (entry.claims, CLAIMS),
            (entry.moments, MOMENTS),
            (evidence and entry.evidence, EVIDENCE),
        ]
        cells += [new_code_cell(code) for present, code in wanted if present]
    book = new_notebook(cells=cells)
    book.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    for number, cell in enumerate(book.cells):
        cell["id"] = f"cell-{number}"  # the same notebook for the same book
    nbformat.validate(book)
    text: str = nbformat.writes(book)
    return text + "\n"
