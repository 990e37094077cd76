"""What may be said of a claim that is wrong: it is right up to a factor, or under an assumption."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import mpmath

from gradproof.symbolic.equations.evaluate import Undefined
from gradproof.symbolic.folding.checks import at_least_one, small_sizes
from gradproof.symbolic.judging.assumptions import ASSUMPTIONS, SYMMETRIC, Assumption
from gradproof.symbolic.judging.sampling import TOLERANCE, Draw, Pair, Sides, drawn, entries, given, sides

POINTS = 12  # at which an assumption must hold; it mostly fails at the first
Env = dict[str, Any]
Powers = tuple[tuple[str, Fraction], ...]


def points(pair: Pair, count: int, kinds: Sequence[str]) -> Iterator[Draw]:
    """Random points of sizes 2 to 4, the first of size 2 throughout: most assumptions fail there."""
    needed = at_least_one(pair.system)
    for seed in range(count):
        sizes = {s: 2 + (seed * (k + 1) + k * bool(seed)) % 3 for k, s in enumerate(pair.system.sizes)}
        if any(int(size.xreplace(sizes)) < 1 for size in needed):
            sizes = small_sizes(pair.system, seed)
        yield drawn(pair, sizes, seed, kinds[seed % len(kinds)])


def under_assumption(pair: Pair, variable: str) -> str | None:
    """The first assumption of the table under which the two sides agree and are not simply 0: `A is symmetric`.

    That the variable itself is fixed is not of interest. Nor is any assumption if the two sides agree without it at the
    points at which it would be tried.
    """
    if _holds(pair, {}):
        return None
    free = [n for n in pair.inputs if pair.system.arrays[n].below is None and not pair.system.arrays[n].properties]
    for assumption in ASSUMPTIONS:
        for name in free:
            if name == variable and assumption.fixes:
                continue
            if assumption.fits(pair.system.arrays[name]) and _holds(pair, {name: assumption}):
                return assumption.text.format(name)
    square = [name for name in free if SYMMETRIC.fits(pair.system.arrays[name])]
    if len(square) > 1 and _holds(pair, dict.fromkeys(square, SYMMETRIC)):
        return f"{' and '.join(square)} are symmetric"
    return None


def _holds(pair: Pair, made: dict[str, Assumption]) -> bool:
    """Whether the two sides agree wherever the assumptions hold, and are not 0 there."""
    rules = {name: assumption.impose for name, assumption in made.items()}
    alive = False
    for draw in points(pair, POINTS, ("small", "positive", "wide", "wide")):
        for _, right, claim in entries(pair, replace(draw, imposed=rules)):
            if right is None:
                continue
            if claim is None or abs(right - claim) > TOLERANCE * max(1, abs(right), abs(claim)):
                return False
            alive = alive or abs(right) > mpmath.mpf(10) ** -9
    return alive


def _sides(pair: Pair, draw: Draw) -> Sides | None:
    try:
        return sides(pair, draw)
    except Undefined:
        return None


def factor(pair: Pair) -> str | None:
    """The factor by which the claim is off everywhere, if there is a simple one: `−1`, `2`, `n`, `1/t`, `n/(n − 1)`."""
    measured: list[tuple[Env, Any]] = []
    for draw in points(pair, 4, ("small", "positive")):
        found = _sides(pair, draw)
        if found is None or not found.defined:
            continue
        ratio = _ratio(found)
        if ratio is None:
            return None
        measured.append((_environment(pair, draw), ratio))
    if len(measured) < 2 or all(_close(ratio, 1) for _, ratio in measured):
        return None
    for number, powers in _candidates(list(measured[0][0])):
        if all(_is(number, powers, env, ratio) for env, ratio in measured):
            return _text(number, powers)
    return None


def _ratio(found: Sides) -> Any:
    """claim/right, if it is the same at every place; None otherwise."""
    ratios = []
    for place, right in found.right.items():
        claim = found.claim[place]
        if claim is None:
            return None
        if abs(right) > mpmath.mpf(10) ** -12:
            ratios.append(claim / right)
        elif abs(claim) > mpmath.mpf(10) ** -12:
            return None
    same = ratios and all(_close(ratio, ratios[0]) for ratio in ratios)
    return ratios[0] if same and abs(ratios[0]) > mpmath.mpf(10) ** -12 else None


def _close(a: Any, b: Any) -> bool:
    return bool(abs(a - b) < mpmath.mpf(10) ** -15 * max(1, abs(b)))


def _environment(pair: Pair, draw: Draw) -> Env:
    """What a factor may consist of: sizes n, n − 1, and scalars."""
    numbers = {str(symbol): mpmath.mpf(value) for symbol, value in draw.sizes.items()}
    less = {f"({name} − 1)": value - 1 for name, value in numbers.items()}
    return numbers | less | {name: entries[()] for name, entries in given(pair, draw).items() if list(entries) == [()]}


def _candidates(names: Sequence[str]) -> Iterator[tuple[Fraction, Powers]]:
    """Simple numbers times simple powers, simplest first."""
    numbers = [Fraction(text) for text in ("1", "-1", "2", "1/2", "-2", "-1/2", "4", "1/4")]
    single = [((name, Fraction(power)),) for power in ("1", "-1", "1/2", "-1/2", "2", "-2") for name in names]
    ways = ((1, 1), (-1, -1), (1, -1), (-1, 1))
    double = [((a, Fraction(p)), (b, Fraction(q))) for a, b in combinations(names, 2) for p, q in ways]
    for powers in ((), *single, *double):
        for number in numbers:
            if powers or number != 1:
                yield number, powers


def _is(number: Fraction, powers: Powers, env: Env, ratio: Any) -> bool:
    value = mpmath.mpf(number.numerator) / number.denominator
    for name, power in powers:
        base = env[name]
        if base == 0 or (base < 0 and power.denominator > 1):
            return False
        value *= base ** (mpmath.mpf(power.numerator) / power.denominator)
    return _close(value, ratio)


def _text(number: Fraction, powers: Powers) -> str:
    """
    >>> _text(Fraction(-1, 2), (("n", Fraction(1)), ("d", Fraction(-1, 2))))
    '−n/(2 √d)'
    """
    signs = {Fraction(1): "{}", Fraction(1, 2): "√{}", Fraction(2): "{}²"}
    top = [signs[power].format(name) for name, power in powers if power > 0]
    bottom = [signs[-power].format(name) for name, power in powers if power < 0]
    whole, part = abs(number).as_integer_ratio()
    top = [str(whole), *top] if whole != 1 or not top else top
    bottom = [str(part), *bottom] if part != 1 else bottom
    below = f"/{bottom[0]}" if len(bottom) == 1 else f"/({' '.join(bottom)})" if bottom else ""
    return f"{'−' if number < 0 else ''}{' '.join(top)}{below}"
