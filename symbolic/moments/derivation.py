"""One derivation of moments: its expressions in terms of the inputs, and its steps, each checked when it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from sympy import Add, Expr, Function, Mul, Pow

from gradproof.symbolic.equations.definitions import plain, put_in
from gradproof.symbolic.equations.expr import Access, Axis, Compare, Implicit, Index, letters, names
from gradproof.symbolic.equations.functions import absolute
from gradproof.symbolic.equations.laws import Law
from gradproof.symbolic.equations.system import Equation, System, out_letters
from gradproof.symbolic.errors import ExpressionError, NoExpectation, RuleError
from gradproof.symbolic.folding.facts import Facts
from gradproof.symbolic.folding.fold import facts, normalise
from gradproof.symbolic.folding.rules import reason
from gradproof.symbolic.moments.assumptions import assumptions, formula
from gradproof.symbolic.moments.closed import geometric, shortest, unrolled
from gradproof.symbolic.moments.combination import of_sums
from gradproof.symbolic.moments.enumeration import WHOLE, World, same_average
from gradproof.symbolic.moments.expansion import Term, expanded, readers, terms
from gradproof.symbolic.moments.growth import Bounds
from gradproof.symbolic.moments.integrability import Doubt, doubts
from gradproof.symbolic.moments.integral import Integral, Unsupported
from gradproof.symbolic.moments.one_density import Divergent
from gradproof.symbolic.moments.one_entry import halved
from gradproof.symbolic.moments.result import MomentResult, MomentStep, Writer
from gradproof.symbolic.phrases import joined, phrase
from gradproof.symbolic.printing import text
from gradproof.symbolic.printing.letters import Letters


class Work:
    """One derivation: the expressions in terms of the inputs, and the steps so far."""

    def __init__(self, systems: Sequence[System], lang: str) -> None:
        self.lang, self.steps = lang, list[MomentStep]()
        arrays = {name: array for system in systems for name, array in system.arrays.items()}
        self.laws: dict[str, Law] = {name: array.law for name, array in arrays.items() if array.law is not None}
        shared = len(systems) == 1  # with two systems, one name may be two arrays
        equations = [e for system in systems for e in system.equations] if shared else []
        self.system = System(arrays, tuple(equations), systems[0].outputs)
        ranks = [system.arrays[system.outputs[0]].rank for system in systems]
        self.outs = out_letters(sum(ranks))
        self.axes: tuple[Axis, ...] = ()
        self.bodies: list[Expr] = []
        self.doubts: dict[Doubt, None] = {}
        self.summed = False  # whether a sum of normal entries was integrated out as one normal value
        unrolls = []
        for system, rank in zip(systems, ranks, strict=True):
            mine = self.outs[len(self.axes) : len(self.axes) + rank]
            self.axes += system.arrays[system.outputs[0]].axes(mine)
            body, closed = self.inputs_only(system, self.laws if shared else system.arrays)
            self.bodies.append(body.xreplace(dict(zip(out_letters(rank), mine, strict=True))))
            unrolls += [(equation, system) for equation in closed]
        self.integral = Integral(self.laws, self.axes, facts(self.system) if shared else Facts())
        self.writer = self.writer_for(self.axes)
        self.label = [system.outputs[0] for system in systems]
        if len(set(self.label)) < len(self.label):
            self.label = ["X", "Y"]
        for equation, system in unrolls:
            self.unrolled(equation, system)
        for name, body in zip(self.label, self.bodies, strict=True):
            self.log("forward", self.named(name), body, body, "by definition", averaged=False)

    def inputs_only(self, system: System, random: Iterable[str]) -> tuple[Expr, list[Equation]]:
        """The output with everything put in that depends on a random array; recurrences in closed form."""
        (output,) = system.outputs
        dependent = {name for name in random}
        for name in (name for group in system.groups for name in group):
            if any(not dependent.isdisjoint(names(e.body)) for e in system.defined[name]):
                dependent.add(name)
        outs = out_letters(system.arrays[output].rank)
        equation = Equation("", outs, system.arrays[output].axes(outs), Access(output, *outs))
        closed = []
        for name in reversed([name for group in system.groups for name in group]):
            if name in names(equation.body) and (name in dependent or name in system.hidden or name == output):
                definition = plain(system, name)
                if definition is None:
                    definition = unrolled(system, name)
                    closed.append(definition)
                equation = put_in(equation, definition)
        return equation.body, closed

    # --- the log

    @property
    def world(self) -> World:
        return World(self.system, self.laws, self.integral.needed, self.integral.unknown)

    def named(self, name: str, power: str = "") -> str:
        indices = "".join(self.writer.names[out.name] for out in self.outs)
        shown = text.printed(name, self.system) + (f"_{indices}" if indices and len(self.bodies) == 1 else "")
        return shown + power

    def writer_for(self, axes: Sequence[Axis]) -> Writer:
        chosen = Letters(self.system).outs((letter, hi - lo) for letter, lo, hi in axes)
        shown = {letter.name: new.name for letter, new in chosen.items()}
        return Writer(self.system, tuple(letter for letter, _, _ in axes), shown, frozenset(self.laws))

    def log(
        self,
        rule: str,
        left: str,
        before: Expr,
        after: Expr,
        checked: str,
        writer: Writer | None = None,
        averaged: bool = True,
        **words: str,
    ) -> None:
        why = reason(rule, self.lang, **words)
        self.steps.append(MomentStep(rule, why, left, before, after, checked, writer or self.writer, averaged))

    def move(self, rule: str, left: str, before: Expr, after: Expr, over: Iterable[str] = (), **words: str) -> Expr:
        """A step whose two sides have one average over the outcomes of the arrays in `over`."""
        if before != after:
            checked = same_average(self.world, [before], after, self.axes, over)
            self.log(rule, left, before, after, checked or NOT_ENUMERATED, None, bool(self.laws), **words)
        return after

    def unrolled(self, equation: Equation, system: System) -> None:
        target = equation.target
        checked = same_average(World(system, self.laws, {}), [target], equation.body, equation.axes, ())
        writer, name = self.writer_for(equation.axes), text.printed(equation.name, self.system)
        how = checked or NOT_ENUMERATED
        self.log("closed recurrence", writer.bare(target), target, equation.body, how, writer, False, name=name)

    # --- the moments

    def mean(self, expr: Expr, left: str) -> Expr:
        """E of an expression: one array after the other is integrated out."""
        scope = self.integral.scope
        self.existing(terms(expr, readers(self.laws), scope))
        expr = self.move("expand", left, expr, expanded(expr, self.laws, scope))
        while self.random(expr):
            expr = self.integrated(expr, left)
        return expr

    def existing(self, found: Iterable[Term]) -> None:
        """Notes what must be assumed for the expectation of each term to exist.

        Raises NoExpectation where there is none: then it is not linear either, and nothing may be taken out of it.
        """
        bounds = Bounds(self.laws, self.system.arrays)
        for term in found:
            try:
                self.doubts.update(dict.fromkeys(doubts(term.factors, bounds)))
            except Divergent as error:
                why = error.why.format(**{name: self.bare(part) for name, part in error.given.items()})
                raise NoExpectation(f"there is no E of {self.bare(error.what)}: {why}") from None

    def bare(self, expr: Expr) -> str:
        """An expression by itself; bound letters that were opened are written i, j, …"""
        bound = sorted(letters(expr) - set(self.outs), key=str)
        return self.writer.bare(expr.xreplace(dict(zip(bound, map(Index, "ijklpq"), strict=False))))

    def random(self, expr: Expr) -> list[str]:
        """The random arrays of an expression; those inside functions come last."""
        found = [name for name in self.laws if name in names(expr)]
        return sorted(found, key=lambda name: self.laws[name].family == "categorical" or inside_function(expr, name))

    def integrated(self, expr: Expr, left: str) -> Expr:
        """The next array integrated out."""
        refused = []
        for name in self.random(expr):
            try:
                after = self.integral.over(name, expr)
            except Unsupported as error:
                inner = sorted({f"{node.kind}({node.matrix})" for node in error.factor.atoms(Implicit)})
                refused.append(f"{' and '.join(inner) or self.bare(error.factor)}: {error.why}")
                continue
            words = {
                "name": text.printed(name, self.system),
                "formula": formula(self.laws[name], self.integral, self.writer),
            }
            after = self.move("expectation over", left, expr, after, [name], **words)
            return self.move("deltas", left, after, self.integral.tidy(after))
        for name in self.random(expr):
            if self.laws[name].centred:
                after = halved(expr, name, self.integral.scope, self.integral.tidy)
                if after != expr:
                    after = self.move(
                        "half by symmetry", left, expr, after, [name], name=text.printed(name, self.system)
                    )
                    return expanded(after, self.laws, self.integral.scope)
        for name in self.random(expr):
            try:
                after = of_sums(name, expr, self.integral)
            except Unsupported:
                continue
            self.summed = True
            shown = text.printed(name, self.system)
            self.log("expectation over", left, expr, after, NORMAL_RULE, name=shown, formula=SUM_OF_NORMALS)
            return self.move("deltas", left, after, self.integral.tidy(after))
        known = (
            "There are rules for sums and products of powers, and for relu, abs, step of symmetric zero-mean entries"
        )
        raise RuleError(f"there is no rule for the expectation of {'; or of '.join(dict.fromkeys(refused))}. {known}")

    def result(self, kind: str) -> MomentResult:
        """The moment of that kind, simplified, with a check of the whole."""
        first, last = self.bodies[0], self.bodies[-1]
        x, y = self.named(self.label[0]), self.named(self.label[-1])
        if kind == "expectation":
            left = f"E[{x}]"
            value = self.mean(first, left)
            value = self.simplified(left, value)
            return self.done(kind, value, self.whole([first], value))
        left = f"Var({x})" if kind == "variance" else f"Cov({x}, {y})"
        means = [self.mean(body, f"E[{name}]") for body, name in zip(self.bodies, (x, y), strict=False)]
        both = self.mean(first * last, f"E[{x}²]" if kind == "variance" else f"E[{x} {y}]")
        value = both - Add(*(a * b for a in Add.make_args(means[0]) for b in Add.make_args(means[-1])))
        self.log(kind, left, value, value, "by definition")
        value = self.simplified(left, value)
        bodies = [first * last, first, last]
        return self.done(kind, value, self.whole(bodies, value, lambda xy, x, y: xy - x * y))

    def whole(self, bodies: Sequence[Expr], value: Expr, combine: Callable[..., Any] = lambda mean: mean) -> str | None:
        """How the whole was checked; not by values of single entries where a sum of them was taken as normal."""
        if self.summed:
            return None
        return same_average(self.world, bodies, value, self.axes, self.laws, combine, WHOLE)

    def simplified(self, left: str, value: Expr) -> Expr:
        """Sums in closed form, like terms collected."""
        value = self.move("deltas", left, value, self.integral.tidy(value))
        ratios: dict[Expr, Expr] = {}
        value = self.move("geometric sum", left, value, geometric(value, ratios))
        self.ratios = ratios
        return self.move("collect", left, value, shortest(value))

    def rewritten(self, kept: Sequence[str]) -> MomentResult:
        """The expression in terms of the named intermediate values."""
        if self.laws:
            raise ExpressionError("this is for expressions without random arrays; others have expectation and variance")
        whole, _ = self.inputs_only(self.system, self.system.arrays)
        left = self.named(self.label[0])
        value = self.move("inputs", left, self.bodies[0], whole)
        value = self.move("deltas", left, value, self.integral.tidy(value))
        for name in kept:
            if name not in self.system.defined:
                known = ", ".join(self.system.defined)
                raise ExpressionError(f"{name} is no intermediate value of this expression; there are {known}")
            rank = self.system.arrays[name].rank
            one = System(self.system.arrays, self.system.equations, (name,))
            body, _ = self.inputs_only(one, self.system.arrays)
            body = normalise(body, self.system.arrays[name].axes(out_letters(rank)))
            found = recognised(value, body, Access(name, *out_letters(rank)))
            value = self.move("named value", left, value, found, name=name)
        value = self.move("collect", left, value, shortest(value))
        self.ratios = {}
        checked = same_average(self.world, [whole], value, self.axes, ())
        return self.done("expectation", value, checked)

    def done(self, kind: str, value: Expr, checked: str | None) -> MomentResult:
        for symbol, (name, function) in self.integral.unknown.items():
            if symbol in value.free_symbols:
                needed = (
                    f"E of {self.writer.bare(function)} is needed, and no rule gives it for what is declared of {name}"
                )
                raise RuleError(f"{needed}; relu, abs and step have rules for {name} of mean 0, declared as {CENTRED}")
        used = [law for name, law in self.laws.items() if any(name in names(body) for body in self.bodies)]
        resting = assumptions(used, value, self.integral, self.ratios, self.writer, self.lang)
        bodies = tuple(self.bodies)
        whole = checked or "step by step"
        if left := [doubt for doubt in self.doubts if not doubt.settled(value)]:
            finite = [f"E{self.bare(absolute(doubt.what) ** doubt.power)} < ∞" for doubt in left]
            resting, whole = (*resting, *finite), phrase("not checked: it holds if {}", joined(" and ", finite))
            self.steps = [replace(s, checked=whole) if s.rule == "expectation over" else s for s in self.steps]
        return MomentResult(
            *(kind, bodies, value, self.outs, self.axes, self.system, tuple(self.steps), resting, whole),
            tuple(self.named(name) for name in self.label),
            self.writer,
        )


CENTRED = "normal=0,…, uniform=−a,a or iid=0,…:even"
SUM_OF_NORMALS = "Σ c_i x_i ~ normal(0, Σ c_i² Var x_i)"
NORMAL_RULE = "by the rule alone: a sum of normal entries is normal"
NOT_ENUMERATED = "by the rule alone: there are too many outcomes to average over"


def inside_function(expr: Expr, name: str) -> bool:
    """Whether an array is read inside a function, a condition or a denominator."""
    if name not in names(expr) or isinstance(expr, Access):
        return False
    root = isinstance(expr, Pow) and not (expr.exp.is_Integer and expr.exp > 0)
    if isinstance(expr, (Function, Compare)) or root:
        return True
    return any(inside_function(arg, name) for arg in expr.args)


def recognised(expr: Expr, body: Expr, target: Access) -> Expr:
    """The expression with a defined value by name: where the definition is c·Σ…, the sum becomes value/c.

    >>> x, v = Access("x"), Access("v")
    >>> recognised(x**2 / (x**2 + 1), 3 * x**2, v)
    v/(3*(v/3 + 1))
    """
    outside = [f for f in Mul.make_args(body) if not names(f) and not letters(f)]
    core = body / Mul(*outside)
    return expr.xreplace({body: target}).xreplace({core: target / Mul(*outside)})
