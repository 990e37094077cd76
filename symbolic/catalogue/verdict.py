"""The verdict on an entry, computed from a comparison with what it states.

What the catalogue itself documents keeps the verdict that was reached when it was written, and that `audit` confirms.
An entry of one's own is compared when its verdict is asked for: nothing that it states, or all of it, or something that
does not hold.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradproof.symbolic.catalogue.entry import Claim, Entry, own
from gradproof.symbolic.catalogue.proof import agrees, derived_moment, prove
from gradproof.symbolic.checking.check import Verdict, check
from gradproof.symbolic.errors import Defect, GradproofError

NOT_COMPARED = "derived, statement not compared"
REFUTED, UNDECIDED = "refuted", "undecided"
UNDER_CONDITIONS = "proved under assumptions"

_found: dict[str, tuple[Entry, str]] = {}


def verdict_of(entry: Entry) -> str:
    """The verdict on an entry: that of the catalogue, or what comparing an entry of one's own with its statement gave.

    >>> from gradproof.symbolic.catalogue import Identity
    >>> mine = ("my.trace", "t", "t", "identity", "me", "proved", "x", "")
    >>> verdict_of(Entry(*mine, identities=(Identity("tr(A.T)", "tr(A)", {"A": "n,n"}),)))
    'proved'
    >>> verdict_of(Entry(*mine, identities=(Identity("tr(A.T)", "2*tr(A)", {"A": "n,n"}),)))
    'refuted'
    """
    if not own(entry):
        return entry.verdict
    known = _found.get(entry.id)
    if known is None or known[0] is not entry:
        _found[entry.id] = known = (entry, _compared(entry))
    return known[1]


def _compared(entry: Entry) -> str:
    try:
        outcomes = list(_outcomes(entry))
    except Defect:
        raise
    except GradproofError:  # what it states cannot be read
        return UNDECIDED
    if not outcomes:
        return NOT_COMPARED
    if not all(right for right, _ in outcomes):
        return REFUTED
    restricted = entry.verdict == "proved" and any(under for _, under in outcomes)
    return UNDER_CONDITIONS if restricted else entry.verdict


def _outcomes(entry: Entry) -> Iterator[tuple[bool, bool]]:
    """Of everything that an entry states: whether it came out as stated, and whether under conditions only."""
    for identity in entry.identities:
        yield agrees(prove(identity).verdict, identity.expected), False
    for claim in entry.claims:
        found = judged(claim)
        yield agrees(found.verdict, claim.expected), bool(found.conditions)
    for moment in entry.moments:
        yield derived_moment(moment)[1], False
    if entry.evidence:
        from gradproof.symbolic.catalogue.evidence import rows

        for row in rows(entry):
            yield row.passed, False


def judged(claim: Claim) -> Verdict:
    """The verdict on a claim of an entry."""
    options = {"cotangent": claim.cotangent, "layout": claim.layout}
    return check(claim.expression, claim.shapes, claim.wrt, claim.claim, **options)  # type: ignore[arg-type]
