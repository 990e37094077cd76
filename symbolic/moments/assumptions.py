"""What a result rests on, in words: the declared laws, independence, lengths, ratios; and what is used of a law."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sympy import Expr, Symbol

from gradproof.symbolic.equations.expr import Access, Index
from gradproof.symbolic.equations.functions import absolute
from gradproof.symbolic.equations.laws import ORDER, CentralMoment, Law, root
from gradproof.symbolic.moments.integral import Integral
from gradproof.symbolic.moments.result import Writer
from gradproof.symbolic.printing import text


def assumptions(
    used: Sequence[Law], value: Expr, integral: Integral, ratios: Mapping[Expr, Expr], writer: Writer, lang: str
) -> tuple[str, ...]:
    """What a value rests on: the laws of the random arrays that were used, and what was assumed on the way."""
    zh = lang == "zh"
    found = []
    for law in used:
        words = {f"p{k}": entry(law, p, writer) for k, p in enumerate(law.parameters)}
        words["kurt"] = entry(law, law.kurt, writer) if law.kurt is not None else ""
        scalar = not writer.system.arrays[law.name].rank
        found.append(described(law, scalar)[zh].format(name=text.plain_name(law.name)[0], **words))
    if len(used) > 1:
        listed = ", ".join(text.plain_name(law.name)[0] for law in used)
        found.append(f"{listed} 相互独立" if zh else f"{listed} are independent of each other")
    for symbol in sorted(value.free_symbols, key=str):
        for law, order in ((law, order) for law in used for order in range(3, ORDER + 1)):
            if symbol == CentralMoment(law.name, order):
                found.append(f"{writer.text(symbol)} = E[({law.name} − E {law.name})^{order}]")
    found += [f"{writer.text(length)} ≥ 0" for length in integral.lengths]
    found += [unequal(ratio, count, writer, zh) for ratio, count in ratios.items()]
    return (*found, *(f"{writer.text(length)} > 0" for length in rooted(used, value, integral)))


def unequal(ratio: Expr, count: Expr, writer: Writer, zh: bool) -> str:
    """For which ratio a geometric sum is not (1 − r^n)/(1 − r), and what it is then."""
    base, power = ratio.as_base_exp()
    even = power.is_Integer and power % 2 == 0
    excluded = writer.text(absolute(base) if even else ratio)
    quotient = writer.text((1 - ratio**count) / (1 - ratio))
    when = f"{excluded} = 1 时 {quotient} 应为" if zh else f"where {excluded} = 1, {quotient} stands for"
    return f"{excluded} ≠ 1 ({when} {writer.text(count)})"


def rooted(used: Sequence[Law], value: Expr, integral: Integral) -> list[Expr]:
    """What was taken as positive in a standard deviation, √(s²) = s, and matters to the value."""
    found: dict[Expr, None] = {}
    for law in used:
        needed = integral.needed.get(law.name)
        for base in root(law.variance)[1] if needed is not None and needed.functions else ():
            even = isinstance(base, (Symbol, Access)) and value.xreplace({base: -base}) == value
            if value.has(base) and not even:
                found[base] = None
    return list(found)


def entry(law: Law, expr: Expr, writer: Writer) -> str:
    """A parameter of a law in letters i, j, …, or v for the value of a categorical entry."""
    shown = "v" if law.family == "categorical" else "ijkl"
    return writer.text(law.at(expr, tuple(map(Index, shown)))) if expr.atoms(Index) else writer.text(expr)


def formula(law: Law, integral: Integral, writer: Writer) -> str:
    """What is used of a law: E[q_i q_j] = μ² + δ_ij σ²."""
    name = text.plain_name(law.name)[0]
    if law.family == "categorical":
        return f"E f({name}) = Σ_v {entry(law, law.parameters[0], writer)} f(v)"
    needed = integral.needed.get(law.name)
    rank = writer.system.arrays[law.name].rank
    first, second = ([Index(letter) for letter in pool[:rank]] for pool in ("ijpq", "klrs"))
    own, other = (writer.bare(Access(law.name, *place)) for place in (first, second))
    mean, spread = entry(law, law.mean, writer), entry(law, law.variance, writer)
    if needed is None or needed.degree < 2:
        return f"E[{own}] = {mean}"
    square = "" if law.mean == 0 else f"{entry(law, law.mean**2, writer)} + "
    if not rank:
        return f"E[{own}²] = {square}{spread}"
    equal = " ".join(f"δ_{a}{b}" for a, b in zip(first, second, strict=True))
    return f"E[{own} {other}] = {square}{'' if spread == '1' else spread + ' '}{equal}"


def described(law: Law, scalar: bool) -> tuple[str, str]:
    """The assumption in words, English and Chinese, with places for the name, the parameters p0, p1 and kurt."""
    kinds = {
        "normal": ("normal with mean {p0} and variance {p1}", "服从正态分布，均值 {p0}，方差 {p1}"),
        "uniform": ("uniform between {p0} and {p1}", "在 {p0} 与 {p1} 之间均匀分布"),
        "bernoulli": ("1 with probability {p0}, else 0", "以概率 {p0} 取 1，否则取 0"),
        "rademacher": ("+1 or −1 with probability 1/2 each", "各以概率 1/2 取 ±1"),
        "categorical": ("v with probability {p0}", "以概率 {p0} 取值 v"),
    }
    en, zh = kinds.get(law.family, ("of mean {p0} and variance {p1}", "均值 {p0}，方差 {p1}"))
    if law.even:
        en, zh = en + ", symmetric about it", zh + "，关于均值对称"
    if law.kurt is not None:
        en, zh = en + ", of kurtosis {kurt}", zh + "，峰度 {kurt}"
    if scalar:
        return f"{{name}} is random, {en}", f"{{name}} 为随机量，{zh}"
    alike = ("independent", "相互独立") if law.family == "independent" else ("i.i.d.", "独立同分布")
    return f"the entries of {{name}} are {alike[0]}, {en}", f"{{name}} 的各元素{alike[1]}，{zh}"
