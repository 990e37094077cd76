"""One derivation as text, LaTeX, Markdown, JSON or code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sympy import Add, Mul

from gradproof.symbolic import latex, text
from gradproof.symbolic.catalogue import Entry
from gradproof.symbolic.counting import cost, size_text
from gradproof.symbolic.derive import Derivation, Step
from gradproof.symbolic.example import numbers_text, worked_example
from gradproof.symbolic.expr import names
from gradproof.symbolic.system import Equation

LAYOUTS = {
    "denominator": "denominator layout: a derivative of a scalar has the shape of its variable",
    "numerator": "numerator layout: the axes of the variable in reverse (a vector gives a row)",
    "numerator Jacobian": "numerator layout: the axes of the value first, then those of the variable",
    "denominator Jacobian": "denominator layout: the axes of the variable first, then those of the value",
}


@dataclass(frozen=True)
class Report:
    """A derivation and how it is to be shown."""

    derivation: Derivation
    entry: Entry | None
    form: str | None
    layout: str
    steps: bool
    example: bool
    lang: str
    other_layout: str = ""  # the same result in the layout that was not asked for

    @property
    def caption(self) -> str:
        """Which layout the derivatives are printed in."""
        gradients = self.derivation.gradients
        is_jacobian = any(found.equation.name == f"J_{name}" for name, found in gradients.items())
        return LAYOUTS[f"{self.layout} Jacobian" if is_jacobian else self.layout]

    @property
    def title(self) -> str:
        if self.entry is None:
            return self.derivation.text.strip()
        return f"{self.entry.id}: {self.entry.title_zh if self.lang == 'zh' else self.entry.title}"

    @property
    def rows(self) -> list[tuple[Equation, str]]:
        """The result's equations with the shapes of the arrays that they give."""
        found = self.derivation
        arrays = found.system.arrays
        return [(e, text.shape_text(arrays[e.name], found.system)) for e in (*found.definitions, *found.results)]

    @property
    def cost(self) -> dict[str, str]:
        """What an engineer who writes the kernel asks next, symbolically."""
        found = self.derivation
        forward = cost(found.forward, [found.output], ())
        both = cost(found.system.needed([found.output, *(e.name for e in found.results)]), None, ())
        derived = [e for e in found.system.equations if e.name not in found.forward.defined]
        kept = [name for name in found.forward.arrays if any(name in names(e.body) for e in derived)]
        entries = Add(*(Mul(*found.forward.arrays[name].shape) for name in kept)).expand()
        return {
            "forward operations": f"{forward.text}   {forward.order}",
            "operations with derivatives": f"{both.text}   {both.order}",
            "bytes read and written": size_text(both.bytes),
            "backward keeps": f"{', '.join(text.plain_name(name)[0] for name in kept) or 'nothing'}"
            f"   ({size_text(8 * entries)} bytes in float64)",
        }

    @property
    def cost_lines(self) -> list[str]:
        return [f"{label}: {value}" for label, value in self.cost.items()]


def as_text(report: Report) -> str:
    """The value, the results with their shapes, the layout, what it costs, the steps, the example."""
    found, lines = report.derivation, [report.title, ""]
    if report.entry is None:
        lines += [found.value, ""]
    rows = [(found.line(equation, report.form), shape) for equation, shape in report.rows]
    width = min(max((len(line) for line, _ in rows), default=0), 88)
    lines += [f"  {line:<{width}}   {shape}" for line, shape in rows]
    if report.form is None and found.form == "matrix" and report.steps:
        lines += ["", "index form", *(f"  {found.line(equation, 'index')}" for equation in found.results)]
    lines += ["", report.caption, *([report.other_layout] if report.other_layout else [])]
    if report.entry is not None:
        note = report.entry.note_zh if report.lang == "zh" else report.entry.note
        lines += [f"verdict: {report.entry.verdict}", *([note] if note else [])]
    lines += ["", *report.cost_lines]
    if report.steps:
        lines += ["", "steps"]
        for number, step in enumerate(found.steps, 1):
            lines += [f"{number:>3}. {step.rule}: {step.reason}"]
            lines += [f"       {line}" for line in step.shown(step.after)]
            lines += [f"       checked: {step.checked}"]
    if report.example:
        lines += ["", *example_lines(report)]
    return "\n".join(lines)


def example_lines(report: Report) -> list[str]:
    """A worked example, one array a line."""
    example = worked_example(report.derivation)
    lines = [f"example: {', '.join(f'{name} = {value}' for name, value in example.sizes.items())}"]
    for group in (example.inputs, example.values, example.results):
        lines += [f"  {text.plain_name(name)[0]} = {numbers_text(value)}" for name, value in group.items()]
    return lines


def as_latex(report: Report) -> str:
    """The result as one `aligned` block, the steps as one more each."""
    found = report.derivation
    parts = [f"% {report.title}", f"% {report.caption}", f"\\[\n{found.latex(report.form)}\n\\]"]
    if report.steps:
        for number, step in enumerate(found.steps, 1):
            parts += [
                f"% {number}. {step.rule}: {step.reason}",
                f"% checked: {step.checked}",
                f"\\[\n{step_latex(step)}\n\\]",
            ]
    return "\n".join(parts)


def step_latex(step: Step) -> str:
    return latex.system_latex(list(step.after), step.system, "index")


def as_markdown(report: Report) -> str:
    """Markdown with `$$` blocks that KaTeX takes."""
    found = report.derivation
    parts = [f"# {report.title}", f"$$\n{found.latex(report.form)}\n$$", f"*{report.caption}*"]
    rows = ["| array | shape |", "|---|---|", *(f"| `{e.name}` | {shape} |" for e, shape in report.rows)]
    parts += ["\n".join(rows), *report.cost_lines]
    if report.steps:
        parts += ["## Steps"]
        for number, step in enumerate(found.steps, 1):
            parts += [
                f"{number}. **{step.rule}**: {step.reason}",
                f"$$\n{step_latex(step)}\n$$",
                f"*checked: {step.checked}*",
            ]
    if report.example:
        parts += ["## Example", "```\n" + "\n".join(example_lines(report)) + "\n```"]
    return "\n\n".join(parts)


def as_json(report: Report) -> dict[str, Any]:
    """The document that DESIGN describes."""
    found = report.derivation
    source = as_code(found, "numpy")
    document: dict[str, Any] = {
        "expression": found.text,
        "shapes": {name: [str(size) for size in found.forward.arrays[name].shape] for name in found.forward.inputs},
        "layout": report.layout,
        "value": found.value,
        "definitions": [found.line(equation, report.form) for equation in found.definitions],
        "gradients": {
            name: {
                "text": str(gradient),
                "latex": gradient.latex,
                "index": gradient.index,
                "numpy": source,
                "shape": [str(size) for size in gradient.shape],
            }
            for name, gradient in found.gradients.items()
        },
        "steps": [
            {
                "rule": step.rule,
                "reason": step.reason,
                "before": step.shown(step.before),
                "after": step.shown(step.after),
                "checked": step.checked,
            }
            for step in found.steps
        ]
        if report.steps
        else [],
        "cost": report.cost,
    }
    if report.example:
        example = worked_example(found)
        document["example"] = {
            "sizes": example.sizes,
            "inputs": example.inputs,
            "values": example.values,
            "results": example.results,
        }
    return document


def as_code(derivation: Derivation, backend: str) -> str:
    """The function that computes value and gradients."""
    if backend == "torch":
        from gradproof.numeric.compile import compile_torch

        return compile_torch(derivation).source
    from gradproof.numeric.compile import compile_numpy

    return compile_numpy(derivation).source
