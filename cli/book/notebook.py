"""A book as a Jupyter notebook that derives, proves and checks everything anew when it is run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from gradproof.cli.book.web import md
from gradproof.cli.output.words import Described, word
from gradproof.symbolic.catalogue import Entry

SETUP = """from gradproof.cli.book.pages import judged
from gradproof.cli.output.words import Described, phrased, rule
from gradproof.symbolic.catalogue import get
from gradproof.symbolic.catalogue.derivation import derive_entry
from gradproof.symbolic.catalogue.evidence import rows, shown
from gradproof.symbolic.catalogue.proof import agrees, derived_moment, prove
from gradproof.symbolic.phrases import phrase

LANG = "{lang}\""""

DERIVE = """derivation = derive_entry(entry, LANG)
derivation"""
STEPS = """for step in derivation.steps:
    print(f"{rule(step.rule, LANG)}: {step.reason}")
    print("\\n".join(f"    {line}" for line in step.shown(step.after)))
    print("   ", phrased(phrase("checked: {}", step.checked), LANG))"""
# the generated code against differences of the generated forward pass, and against 40 digits
COMPARE = """from gradproof.numeric import crosscheck

report = crosscheck(derivation, against=("differences", "mpmath"))
print(report)
assert report.passed"""
IDENTITIES = """for identity in entry.identities:
    proof = prove(identity)
    print(f"{identity.left}  =  {identity.right}")
    print("   ", phrased(phrase("{}: {}", proof.verdict, proof.how), LANG))
    assert agrees(proof.verdict, identity.expected)"""
CLAIMS = """for claim in entry.claims:
    verdict, how = judged(claim)
    print(phrased(claim.says, LANG))
    print("   ", phrased(phrase("{}: {}", verdict, how), LANG))
    assert agrees(verdict, claim.expected)"""
MOMENTS = """for moment in entry.moments:
    result, right = derived_moment(moment, LANG)
    print(result)
    assert right"""
EVIDENCE = """for row in rows(entry):
    found = phrase("{}; expected {}", shown(row.value), shown(row.expected))
    print(phrased(row.label, LANG), phrased(found, LANG), sep="  →  ")
    assert row.passed, row"""

EXPERIMENT = """from gradproof.cli.book.figures import svg
from gradproof.models.experiments import run

experiment = run(entry.experiment)
print(experiment.table())
print(phrased(experiment.conclusion, LANG))
assert all(check.passed for check in experiment.checks)
svg(experiment, lambda name: phrased(name, LANG))"""


def notebook(entries: Sequence[Entry], lang: str = "en", notes: str | None = None, evidence: bool = True) -> str:
    """The notebook as JSON text; `notes` is the file of a user's own entries."""
    cells = [new_markdown_cell(f"# {word('book', lang)}")] if len(entries) > 1 else []
    setup = SETUP.format(lang=lang)
    if notes:
        setup += f"\nfrom gradproof.cli.commands.notes import load\n\nload({str(Path(notes).resolve())!r})"
    cells.append(new_code_cell(setup))
    for entry in entries:
        described = Described(entry, lang)
        head = f"## {md(described.title)}\n\n`{entry.id}` · {entry.source} · {described.verdict}\n\n"
        head += f"{word('document', lang)}{word('colon', lang)}\n\n" if entry.right else ""
        head += f"$$\n{described.statement}\n$$\n\n"
        head += f"{word('right', lang)}{word('colon', lang)}\n\n$$\n{described.right}\n$$\n\n" if entry.right else ""
        cells += [new_markdown_cell((head + md(described.note)).strip()), new_code_cell(f'entry = get("{entry.id}")')]
        if entry.expression and entry.wrt:
            cells.append(new_code_cell(DERIVE))
            cells.append(new_code_cell(STEPS))
            cells += [new_code_cell(COMPARE)] if entry.mode == "adjoint" else []
        wanted = [
            (entry.identities, IDENTITIES),
            (entry.claims, CLAIMS),
            (entry.moments, MOMENTS),
            (evidence and entry.evidence, EVIDENCE),
            (evidence and entry.experiment, EXPERIMENT),
        ]
        cells += [new_code_cell(code) for present, code in wanted if present]
    book = new_notebook(cells=cells)
    book.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    for number, cell in enumerate(book.cells):
        cell["id"] = f"cell-{number}"  # the same notebook for the same book
    nbformat.validate(book)
    text: str = nbformat.writes(book)
    return text + "\n"
