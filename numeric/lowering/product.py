"""Products with conditions, and sums over them.

    Σ over b of  coefficient · factors · conditions

A condition on one letter (1 ≤ t) narrows its range: a summed letter then runs over fewer values, a free one gets zeros
around the result. δ(p, w[t]) is a scatter-add. Every other condition masks: it is multiplied in, or put into a `where`
when a factor may be infinite or undefined where the condition fails.
"""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Add, Expr, Integer, Mul, Pow, S, exp, log, tan

from gradproof.numeric.lowering.contract import contract
from gradproof.numeric.lowering.gram import halves
from gradproof.numeric.lowering.lower import Lowering, Part, Ranges, length
from gradproof.numeric.lowering.running import running_sums
from gradproof.numeric.lowering.scatter import add_at, find_lookups, find_overlaps, put_together
from gradproof.numeric.lowering.terms import Terms, bound_of, narrow, put_in_place, sorted_terms
from gradproof.symbolic.equations.expr import (
    Access,
    Axis,
    Compare,
    Index,
    Reduce,
    letters,
    names,
    open_,
    sum_,
)


def lower_sum(low: Lowering, body: Expr, axes: Sequence[Axis], ranges: Ranges, wanted: Sequence[Index]) -> Part:
    """Σ over `axes` of an expression; a sum is split where its terms can be contracted on their own."""
    if isinstance(body, Add) and any(_contracts(term, axes) for term in body.args):
        return low.add([lower_terms(low, Mul.make_args(term), axes, ranges, wanted) for term in body.args], wanted)
    return lower_terms(low, Mul.make_args(body), axes, ranges, wanted)


def _contracts(term: Expr, axes: Sequence[Axis]) -> bool:
    """Whether a term of a sum is better summed alone: a matrix product, a condition, or a letter that it lacks."""
    summed = {letter for letter, _, _ in axes}
    factors = [factor for factor in Mul.make_args(term) if letters(factor)]
    if any(isinstance(factor, Compare) for factor in factors) or not summed <= letters(term):
        return True
    return len({letters(factor) for factor in factors}) > 1


def lower_terms(
    low: Lowering, factors: Sequence[Expr], axes: Sequence[Axis], ranges: Ranges, wanted: Sequence[Index]
) -> Part:
    """Σ over `axes` of a product of factors."""
    if not axes and (spread := _spread(low, factors, ranges, wanted)) is not None:
        return spread
    factors, axes = _placed(factors, axes, ranges)
    terms = sorted_terms(factors, axes, ranges, low)
    while any(find_lookups(low, terms, c, ranges) or narrow(terms, c) for c in terms.conditions):
        pass
    find_overlaps(low, terms)
    _drop_padded(low, terms)
    part = _masked_sum(low, terms, wanted)
    if terms.scattered:
        part = add_at(low, terms, part, ranges, wanted)
    part = put_together(low, terms, part, ranges, wanted)
    return put_in_place(low, terms, part, ranges)


# -------------------------------------------------------------------------------------------------- masks and products


def _drop_padded(low: Lowering, terms: Terms) -> None:
    """Leave out conditions that only say that a factor lies inside its array: it is padded with zeros there."""
    from gradproof.numeric.lowering.access import padded_bounds

    for factor in terms.factors:
        if isinstance(factor, Access):
            bounds = padded_bounds(low, factor, terms.ranges)
            terms.conditions = [c for c in terms.conditions if names(c) or bound_of(c) not in bounds]


def _masked_sum(low: Lowering, terms: Terms, wanted: Sequence[Index]) -> Part:
    """Σ of the product of all factors and masks."""
    factors = [(factor, low.lower(factor, terms.ranges, wanted)) for factor in terms.factors if factor != 1]
    factors = running_sums(low, terms, factors, wanted)
    summed = terms.summed
    order = wanted or max((part.letters for _, part in factors), key=len, default=())
    masks = [low.lower(condition, terms.ranges, order) for condition in terms.conditions if condition != 1]
    if any(condition == 0 for condition in terms.conditions):
        return Part(low.graph.scalar(0))
    outside = [part for _, part in factors if not summed & set(part.letters)]
    inside = [(factor, part) for factor, part in factors if summed & set(part.letters)]
    present = {x for _, part in inside for x in part.letters} | {x for part in masks for x in part.letters}
    repeated = [length(lo, hi) for x, (lo, hi) in terms.ranges.items() if x in summed - present]
    scalars = [part for part in outside if part.node.op == "scalar"] + [Part(low.graph.scalar(s)) for s in repeated]
    outside = [part for part in outside if part.node.op != "scalar"]
    kept = {x for _, part in inside for x in part.letters} - summed
    if len(inside) > 2 and len(kept) > 2:  # cheaper on a factor than on the result
        small = [p for p in outside if any(set(p.letters) < set(part.letters) for _, part in inside)]
        inside += [(S.One, part) for part in small]
        outside = [part for part in outside if part not in small]
        twins = None if masks else halves(low, [*scalars, *(part for _, part in inside)], summed, wanted)
        if twins is not None:
            inside, scalars = [(S.One, part) for part in twins], []
    if not masks:
        middle = [contract(low, [part for _, part in inside], summed, wanted)] if inside else []
        return low.mul([*scalars, *outside, *middle], wanted)
    if not summed:
        blocks = _blocks(low, factors, masks, scalars, wanted)
        if blocks is not None:
            return blocks
        return low.mul([*scalars, _masked(low, factors, masks, scalars, wanted)], wanted)
    # A factor outside of the sum that may be undefined must meet its mask, so it goes inside.
    unsafe = [(f, p) for f, p in factors if p in outside and may_be_undefined(low, f)]
    inside += unsafe
    outside = [part for part in outside if all(part is not p for _, p in unsafe)]
    operands = _apply_masks(low, inside, masks, wanted)
    return low.mul([*scalars, *outside, contract(low, operands, summed, wanted)], wanted)


def _placed(factors: Sequence[Expr], axes: Sequence[Axis], ranges: Ranges) -> tuple[Sequence[Expr], Sequence[Axis]]:
    """Σ_s x_s Σ_jk δ(s, q j + k) A_j B_k without its inner sum, which only says where A_j B_k stands (Kronecker)."""
    summed = {letter for letter, _, _ in axes}
    for position, factor in enumerate(factors):
        if isinstance(factor, Reduce) and factor.op == "sum" and letters(factor) & summed:
            body, inner = open_(factor, {*ranges, *summed, *letters(Mul(*factors))})
            own = {letter for letter, _, _ in inner}
            parts = Mul.make_args(body)
            deltas = [c for c in parts if isinstance(c, Compare) and c.op == "==" and not names(c)]
            if own and own <= frozenset().union(*map(letters, deltas)) and all(letters(c) - own for c in deltas):
                return [*factors[:position], *factors[position + 1 :], *parts], [*axes, *inner]
    return factors, axes


def _spread(low: Lowering, factors: Sequence[Expr], ranges: Ranges, wanted: Sequence[Index]) -> Part | None:
    """A product of rank 3 or more, with small factors inside of the large sum that they multiply."""
    large = [f for f in factors if isinstance(f, (Add, Reduce)) and len(letters(f) & ranges.keys()) > 2]
    small = [f for f in factors if f not in large]
    conditions = any(isinstance(f, Compare) for f in small)
    own = frozenset().union(*(letters(f) for f in small)) & ranges.keys()
    if len(large) != 1 or conditions or not own or not own < letters(large[0]):
        return None
    (whole,) = large
    if isinstance(whole, Reduce):
        body, axes = open_(whole, ranges)
        product_ = len(Mul.make_args(body)) > 2 and whole.op == "sum" and not body.atoms(Compare)
        return low.lower(sum_(Mul(body, *small), axes), ranges, wanted) if product_ else None
    blocks = [t for t in whole.args if any(isinstance(f, Compare) and f.op == "==" for f in Mul.make_args(t))]
    if not blocks:
        return None
    return low.add(
        [lower_terms(low, Mul.make_args(Mul(term, *small)), [], ranges, wanted) for term in whole.args], wanted
    )


def _blocks(
    low: Lowering,
    factors: Sequence[tuple[Expr, Part]],
    masks: Sequence[Part],
    scalars: Sequence[Part],
    wanted: Sequence[Index],
) -> Part | None:
    """δ_lp times an array of l and other letters: zeros with the array on the diagonal of two axes."""
    rest = low.mul([*scalars, *(part for _, part in factors if part.node.op != "scalar")], wanted)
    if len(masks) != 1 or masks[0].node.op != "eye" or len(rest.letters) < 2:
        return None
    letter, other = sorted(masks[0].letters, key=lambda x: x not in rest.letters)
    if other in rest.letters:
        return None
    every = dict.fromkeys([*rest.letters, letter, other])
    order = [x for x in wanted if x in every]
    order = order if len(order) == len(every) else list(every)
    first, second = sorted((order.index(letter), order.index(other)))
    beside = [x for x in order if x not in (letter, other)]
    beside[first if second == first + 1 else 0 : 0] = [letter]  # where NumPy puts the axis of two equal indices
    size = {
        **dict(zip(rest.letters, rest.node.shape, strict=True)),
        **dict.fromkeys((letter, other), masks[0].node.shape[0]),
    }
    shape = [size[x] for x in order]
    return Part(low.graph.make("blocks", [low.align(rest, beside)], (first, second), shape), tuple(order))


def _masked(
    low: Lowering,
    factors: Sequence[tuple[Expr, Part]],
    masks: Sequence[Part],
    scalars: Sequence[Part],
    wanted: Sequence[Index],
) -> Part:
    """A product without a sum: where(mask, rest, 0), or mask · rest when the rest is always finite."""
    mask = low.mul(masks, wanted)
    rest = [part for _, part in factors if part.node.op != "scalar"]
    if not rest:
        return mask
    if not any(may_be_undefined(low, factor) for factor, _ in factors):
        return low.mul([*rest, mask], wanted)
    return where_zero(low, mask, low.mul(rest, wanted), wanted)


def where_zero(low: Lowering, mask: Part, value: Part, wanted: Sequence[Index]) -> Part:
    if mask.node.op == "eye" and len(value.letters) == 1 and value.letters[0] in mask.letters:
        return low.mul([value, mask], wanted)  # a diagonal matrix
    parts = [mask, value, Part(low.graph.scalar(0))]
    return low.elementwise("where", lambda nodes: low.graph.where(nodes, True), parts, wanted)


def _apply_masks(
    low: Lowering, factors: Sequence[tuple[Expr, Part]], masks: Sequence[Part], wanted: Sequence[Index]
) -> list[Part]:
    """Operands of a contraction with every mask multiplied into one of them, and guarding the unsafe ones."""
    operands = list(factors)
    for mask in masks:
        own = set(mask.letters)
        guarded = False
        for k, (factor, part) in enumerate(operands):
            if may_be_undefined(low, factor) and (own & set(part.letters) or not part.letters):
                operands[k] = (factor, where_zero(low, mask, part, wanted))
                guarded = True
        if guarded:
            continue
        hosts = [k for k, (_, part) in enumerate(operands) if own <= set(part.letters)]
        if hosts:
            host = min(hosts, key=lambda k: len(operands[k][1].letters))
            operands[host] = (operands[host][0], low.mul([operands[host][1], mask], wanted))
        else:
            operands.append((S.One, mask))
    return [part for _, part in operands]


def may_be_undefined(low: Lowering, expr: Expr) -> bool:
    """Whether an expression can be infinite or undefined somewhere: a logarithm, a division, a large exponential."""
    if isinstance(expr, Access):
        return expr.name in low.undefined
    if not names(expr):
        return False
    if isinstance(expr, Pow):
        counted = isinstance(expr.base, Reduce) and all(isinstance(f, Compare) for f in Mul.make_args(expr.base.body))
        if counted:  # how many entries are the largest: at least one
            return False
        if not (isinstance(expr.exp, Integer) and expr.exp > 0):
            return True
    elif isinstance(expr, (log, exp, tan)) or type(expr).__name__ in ("log1p", "sinh", "cosh", "expm1"):
        return True
    return any(may_be_undefined(low, arg) for arg in expr.args)
