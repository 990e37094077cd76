"""What may be said of a claim that is wrong: it is right up to a factor, or under an assumption."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import mpmath

from gradproof.symbolic.assumptions import ASSUMPTIONS, SYMMETRIC, Assumption
from gradproof.symbolic.checks import small_sizes
from gradproof.symbolic.evaluate import Undefined
from gradproof.symbolic.sampling import Draw, Pair, Sides, drawn, given, sides

POINTS = 12  # at which an assumption must hold; it mostly fails at the first
Env = dict[str, Any]


def points(pair: Pair, count: int) -> Iterator[Draw]:
    kinds = ("small", "positive", "wide", "wide")
    for seed in range(count):
        yield drawn(pair, small_sizes(pair.system, seed), seed, kinds[seed % 4])


def under_assumption(pair: Pair, variable: str) -> str | None:
    """The first assumption of the table under which the two sides agree and are not simply 0: `A is symmetric`.

    That the variable itself is fixed is not of interest.
    """
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
    rules = {name: assumption.impose for name, assumption in made.items()}
    alive = False
    for draw in points(pair, POINTS):
        found = _sides(pair, replace(draw, imposed=rules))
        if found is None or not found.defined:
            continue
        if found.gaps():
            return False
        alive = alive or any(abs(value) > mpmath.mpf(10) ** -9 for value in found.right.values())
    return alive


def _sides(pair: Pair, draw: Draw) -> Sides | None:
    try:
        return sides(pair, draw)
    except Undefined:
        return None


def factor(pair: Pair) -> str | None:
    """The factor by which the claim is off everywhere, if there is a simple one: `−1`, `2`, `n`, `1/t`, `n/(n − 1)`."""
    measured: list[tuple[Env, Any]] = []
    for draw in points(pair, 4):
        found = _sides(pair, draw)
        if found is None or not found.defined:
            continue
        ratio = _ratio(found)
        if ratio is None:
            return None
        measured.append((_environment(pair, draw), ratio))
    if len(measured) < 2:
        return None
    for text, value in _candidates(pair, measured[0][0]):
        if all(abs(value(env) - ratio) < mpmath.mpf(10) ** -15 * max(1, abs(ratio)) for env, ratio in measured):
            return text
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
    same = ratios and all(abs(ratio - ratios[0]) < mpmath.mpf(10) ** -15 * max(1, abs(ratios[0])) for ratio in ratios)
    return ratios[0] if same and abs(ratios[0]) > mpmath.mpf(10) ** -12 else None


def _environment(pair: Pair, draw: Draw) -> Env:
    numbers = {str(symbol): mpmath.mpf(value) for symbol, value in draw.sizes.items()}
    return numbers | {name: entries[()] for name, entries in given(pair, draw).items() if list(entries) == [()]}


def _candidates(pair: Pair, env: Env) -> Iterator[tuple[str, Callable[[Env], Any]]]:
    for text, number in (("−1", -1), ("2", 2), ("1/2", 0.5), ("−2", -2), ("−1/2", -0.5), ("4", 4), ("1/4", 0.25)):
        yield text, lambda env, number=number: mpmath.mpf(number)  # type: ignore[misc]
    for sign, c in (("", 1), ("−", -1), ("2", 2)):
        for name in env:
            n = name
            powers = ((f"{n}", 1), (f"/{n}", -1), (f"√{n}", 0.5), (f"/√{n}", -0.5), (f"{n}²", 2), (f"/{n}²", -2))
            for text, power in powers:
                one = "1" if text.startswith("/") and sign != "2" else ""
                yield sign + one + text, lambda env, name=name, power=power, c=c: _power(c, env[name], power)  # type: ignore[misc]
            if sign == "" and name in map(str, pair.system.sizes):
                yield f"{n}/({n} − 1)", lambda env, name=name: env[name] / (env[name] - 1) if env[name] != 1 else mpmath.inf  # type: ignore[misc]
                yield f"({n} − 1)/{n}", lambda env, name=name: (env[name] - 1) / env[name]  # type: ignore[misc]
        for name in env:
            for other in env:
                if name < other:
                    both = f"{name} {other}"
                    yield f"{sign}{both}", lambda env, a=name, b=other, c=c: c * env[a] * env[b]  # type: ignore[misc]
                    top = "1" if sign != "2" else ""
                    yield f"{sign}{top}/({both})", lambda env, a=name, b=other, c=c: c / (env[a] * env[b])  # type: ignore[misc]


def _power(c: float, base: Any, power: float) -> Any:
    return mpmath.inf if base < 0 and power not in (1, -1, 2, -2) else c * base**power
