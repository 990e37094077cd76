"""One derivation as text, LaTeX, Markdown, JSON or code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sympy import Add, Mul

from gradproof.cli.output.console import padded, width_of
from gradproof.cli.output.latex_text import escaped
from gradproof.cli.output.words import Described, phrased, rule, word
from gradproof.symbolic.catalogue import Entry
from gradproof.symbolic.counting import BYTES, cost, size_text
from gradproof.symbolic.deriving.derivation import Derivation, Step
from gradproof.symbolic.deriving.example import numbers_text, worked_example
from gradproof.symbolic.equations.system import Equation, System
from gradproof.symbolic.folding.halves import backward_system
from gradproof.symbolic.phrases import phrase
from gradproof.symbolic.printing import latex, text

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
    dtype: str = "float64"  # of the entries whose bytes are counted

    @property
    def caption(self) -> str:
        """Which layout the derivatives are printed in."""
        return self.told(LAYOUTS[f"{self.layout} Jacobian" if self.derivation.is_jacobian else self.layout])

    def told(self, text: str) -> str:
        """Words in the language of the report."""
        return phrased(text, self.lang)

    def titled(self, step: Step) -> str:
        return f"{rule(step.rule, self.lang)}{word('colon', self.lang)}{step.reason}"

    @property
    def captions(self) -> list[str]:
        """The layout, and how the derivative by a symmetric variable is meant."""
        return [self.caption, *self.derivation.conventions(self.lang)]

    @property
    def title(self) -> str:
        if self.entry is None:
            return self.derivation.text.strip()
        return f"{self.entry.id}: {Described(self.entry, self.lang).title}"

    @property
    def equations(self) -> list[Equation]:
        """Definitions, the value itself, and the results, each once and in that order."""
        found = self.derivation
        named = {e.name for e in (*found.definitions, *found.results)}
        value = () if found.output in named else (*found.value_definitions, *found.value_equations)
        return [*found.definitions, *value, *found.results]

    @property
    def system(self) -> System:
        """The derived system, with the names of the forward equations too."""
        found = self.derivation
        return replace(found.system, arrays={**found.forward.arrays, **found.system.arrays}, _cache={})

    @property
    def rows(self) -> list[tuple[Equation, str]]:
        """The printed equations with the shapes of the arrays that they give."""
        return [(e, self.told(text.shape_text(self.system.arrays[e.name], self.system))) for e in self.equations]

    def line(self, equation: Equation) -> str:
        """One equation as text."""
        found = self.derivation
        return text.equation_text(equation, self.system, self.form or found.form, found.letters)

    @property
    def latex(self) -> str:
        """The printed equations as one `aligned` block."""
        found = self.derivation
        return latex.system_latex(self.equations, self.system, self.form or found.form, found.letters)

    @property
    def cost(self) -> dict[str, str]:
        """What an engineer who writes the kernel asks next, symbolically."""
        found = self.derivation
        itemsize = BYTES[self.dtype]
        forward = cost(found.forward, [found.output], (), itemsize)
        both = cost(found.system.needed([found.output, *(e.name for e in found.results)]), None, (), itemsize)
        backward = backward_system(found.system, found.forward, [e.name for e in found.results])
        kept = [name for name in found.forward.arrays if name in backward.inputs]
        entries = Add(*(Mul(*found.forward.arrays[name].shape) for name in kept)).expand()
        shown = ", ".join(text.printed(name, found.forward) for name in kept)
        held = self.told(phrase("{} bytes in {}", size_text(itemsize * entries), self.dtype))
        return {
            "forward operations": f"{forward.text}   {forward.order}",
            "operations with derivatives": f"{both.text}   {both.order}",
            "bytes read and written": size_text(both.bytes),
            "backward keeps": f"{shown or self.told('nothing')}   ({held})",
        }

    @property
    def cost_lines(self) -> list[str]:
        return [f"{self.told(label)}{word('colon', self.lang)}{value}" for label, value in self.cost.items()]


def as_text(report: Report) -> str:
    """The value, the results with their shapes, the layout, what it costs, the steps, the example."""
    found, lines = report.derivation, [report.title, ""]
    rows = [(report.line(equation), shape) for equation, shape in report.rows]
    width = min(max((width_of(line) for line, _ in rows), default=0), 88)
    lines += [f"  {padded(line, width)}   {shape}" for line, shape in rows]
    if report.form is None and found.form == "matrix" and report.steps:
        lines += ["", report.told("index form"), *(f"  {found.line(equation, 'index')}" for equation in found.results)]
    lines += ["", *report.captions, *([report.told(report.other_layout)] if report.other_layout else [])]
    if report.entry is not None:
        described = Described(report.entry, report.lang)
        lines += [
            f"{word('verdict', report.lang).lower()}{word('colon', report.lang)}{described.verdict}",
            *([described.note] if described.note else []),
        ]
    lines += ["", *report.cost_lines]
    if report.steps:
        lines += ["", report.told("steps")]
        for number, step in enumerate(found.steps, 1):
            lines += [f"{number:>3}. {report.titled(step)}"]
            lines += [f"       {line}" for line in step.shown(step.after)]
            lines += [f"       {report.told(phrase('checked: {}', step.checked))}"]
    if report.example:
        lines += ["", *example_lines(report)]
    return "\n".join(lines)


def example_lines(report: Report) -> list[str]:
    """A worked example, one array a line."""
    example = worked_example(report.derivation)
    lines = [
        report.told(phrase("example: {}", ", ".join((f"{name} = {value}" for name, value in example.sizes.items()))))
    ]
    for group in (example.inputs, example.values, example.results):
        lines += [f"  {text.printed(name, report.system)} = {numbers_text(value)}" for name, value in group.items()]
    return lines


def as_latex(report: Report) -> str:
    """The result as one `aligned` block, the steps as one more each."""
    found = report.derivation
    parts = [f"% {report.title}", *(f"% {line}" for line in report.captions), f"\\[\n{report.latex}\n\\]"]
    for number, step in enumerate(found.steps if report.steps else (), 1):
        title = escaped(f"{number}. {rule(step.rule, report.lang)}")
        parts += [f"\\noindent\\textbf{{{title}}}: {escaped(step.reason)}", f"\\[\n{step_latex(step)}\n\\]"]
        parts += [f"\\noindent {escaped(report.told(phrase('checked: {}', step.checked)))}\n"]
    if report.example:
        parts += [f"\\noindent {escaped(line)}\\\\" for line in example_lines(report)]
    return "\n".join(parts)


def step_latex(step: Step) -> str:
    return latex.system_latex(list(step.after), step.system, "index")


def as_markdown(report: Report) -> str:
    """Markdown with `$$` blocks that KaTeX takes."""
    found = report.derivation
    parts = [f"# {report.title}", f"$$\n{report.latex}\n$$", *(f"*{line}*" for line in report.captions)]
    rows = [
        f"| {report.told('array')} | {report.told('shape')} |",
        "|---|---|",
        *(f"| ${latex.markdown_safe(latex.printed(e.name, report.system))}$ | {shape} |" for e, shape in report.rows),
    ]
    parts += ["\n".join(rows), *report.cost_lines]
    if report.steps:
        parts += [f"## {word('steps', report.lang)}"]
        for number, step in enumerate(found.steps, 1):
            parts += [
                f"{number}. **{rule(step.rule, report.lang)}**: {step.reason}",
                f"$$\n{step_latex(step)}\n$$",
                f"*{report.told(phrase('checked: {}', step.checked))}*",
            ]
    if report.example:
        parts += [f"## {word('example', report.lang)}", "```\n" + "\n".join(example_lines(report)) + "\n```"]
    return "\n\n".join(parts)


def as_json(report: Report) -> dict[str, Any]:
    """The document that DESIGN describes."""
    found = report.derivation
    source = as_code(found, "numpy")
    document: dict[str, Any] = {
        "expression": found.text,
        "shapes": {name: [str(size) for size in found.forward.arrays[name].shape] for name in found.forward.inputs},
        "layout": report.layout,
        "conventions": found.conventions(report.lang),
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
                "checked": report.told(step.checked),
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
    """The function that computes value and gradients, for a library that need not be installed."""
    from gradproof.numeric.compile import source_for

    return source_for(backend, derivation)
