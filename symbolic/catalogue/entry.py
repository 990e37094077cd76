"""What a catalogue entry states; everything else about it (steps, gradient, LaTeX, code, checks) is computed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gradproof.symbolic.catalogue.chapters import place
from gradproof.symbolic.errors import GradproofError

KINDS = ("gradient", "identity", "statistic", "bound", "algorithm", "count", "claim", "experiment")
VERDICTS = (
    "proved",
    "proved under assumptions",
    "corrected",
    "counterexample",
    "experiment",
    "analogy",
)

MODES = ("adjoint", "jacobian", "hessian", "tangent", "propagation")
MOMENTS = ("expectation", "variance")
EXPECTED = ("proved", "refuted")
ORDER = "an entry is Entry(id, title, title_zh, kind, source, verdict, statement, …)"


@dataclass(frozen=True)
class Identity:
    """Two expressions that are the same for all inputs; both over the same `shapes`.

    Where a document states a false one, `expected` is "refuted".
    """

    left: str
    right: str
    shapes: Mapping[str, str]
    says: str = ""
    expected: str = "proved"


@dataclass(frozen=True)
class Claim:
    """A formula for the derivative of `expression`, and the verdict that `check` must reach on it."""

    expression: str
    shapes: Mapping[str, str]
    wrt: str
    claim: str
    expected: str
    says: str = ""
    cotangent: str | None = None
    layout: str = "denominator"


@dataclass(frozen=True)
class Moment:
    """The expectation or variance (`kind`) of an expression, and the `value` that must be derived for it."""

    kind: str
    expression: str
    shapes: Mapping[str, str]
    value: str
    says: str = ""


@dataclass(frozen=True)
class Entry:
    """One documented formula.

    `expression` and `shapes` state the forward equations in the expression language. `shown` names the arrays whose
    adjoints a derivation prints, in that order; `names` renames adjoints (`xhat_bar` is the document's u). `evidence`
    names a function ("module:function") that returns rows of numbers for what no derivation can show.
    """

    id: str
    title: str
    title_zh: str
    kind: str
    source: str
    verdict: str
    statement: str
    expression: str = ""
    shapes: Mapping[str, str] = field(default_factory=dict)
    wrt: tuple[str, ...] = ()
    cotangent: str | None = None
    shown: tuple[str, ...] = ()
    absorbed: tuple[str, ...] = ()  # arrays whose derivatives are always put where they are read
    names: Mapping[str, str] = field(default_factory=dict)
    letters: Mapping[str, str] = field(default_factory=dict)
    form: str = "matrix"
    mode: str = "adjoint"  # one of MODES
    identities: tuple[Identity, ...] = ()
    claims: tuple[Claim, ...] = ()
    moments: tuple[Moment, ...] = ()
    evidence: str = ""
    assumptions: tuple[str, ...] = ()
    note: str = ""
    note_zh: str = ""
    right: str = ""  # what is right (LaTeX) where the statement, the document's form, is not
    experiment: str = ""  # the experiment whose table and figure belong to it (`gradproof experiment` lists them)

    @property
    def topic(self) -> str:
        return self.id.split(".")[0]


_ENTRIES: dict[str, Entry] = {}
_DOCUMENTED: set[str] = set()  # the identifiers of the catalogue's own entries


def add(entry: Entry) -> Entry:
    """Register an entry; a user's own notes use this very function (`--catalogue my_notes.py`).

    Raises GradproofError where the entry is incomplete or its identifier is taken.

    >>> square = ("my.square", "A square", "平方", "gradient", "me", "proved", "x^2", "sum(x**2)", {"x": "n"}, ("x",))
    >>> add(Entry(*square)).topic
    'my'
    >>> remove("my.square")
    """
    if not isinstance(entry, Entry):
        raise GradproofError(f"add takes an Entry(…), not {entry!r}")
    for wrong in _wrong(entry):
        raise GradproofError(f"{entry.id}: {wrong}")
    if entry.id in _ENTRIES:
        raise GradproofError(f"there is an entry {entry.id} already")
    _ENTRIES[entry.id] = entry
    return entry


def _wrong(entry: Entry) -> Iterator[str]:
    """What is wrong with an entry as it is written; what it states is looked at when it is shown."""
    if not re.fullmatch(r"[\w-]+(\.[\w-]+)+", str(entry.id)):
        yield "an identifier is topic.name, of letters, digits, _ and -"
    for name, allowed in (("kind", KINDS), ("verdict", VERDICTS), ("mode", MODES)):
        if (value := getattr(entry, name)) not in allowed:
            yield f"the {name} {value!r} is not one of {', '.join(allowed)}; {ORDER}"
    for name in ("title", "title_zh", "source", "statement"):
        if not str(getattr(entry, name)).strip():
            yield f"the {name} is empty"
    for name in ("wrt", "shown", "absorbed", "assumptions"):
        if isinstance(getattr(entry, name), str):
            yield f"{name} is a tuple of texts, with a comma after a single one: {name}=({getattr(entry, name)!r},)"
    for name, sort in (("identities", Identity), ("claims", Claim), ("moments", Moment)):
        value = getattr(entry, name)
        if not isinstance(value, (tuple, list)) or not all(isinstance(one, sort) for one in value):
            yield f"{name} is a tuple of {sort.__name__}(…), with a comma after a single one"
    stated: tuple[Identity | Claim, ...] = (*entry.identities, *entry.claims)
    for moment in entry.moments:
        if moment.kind not in MOMENTS:
            yield f"a moment is one of {', '.join(MOMENTS)}, not {moment.kind!r}"
    for one in stated:
        if one.expected not in EXPECTED:
            yield f"what is expected of an identity or a claim is one of {', '.join(EXPECTED)}, not {one.expected!r}"
    if not (entry.expression or stated or entry.moments or entry.evidence):
        yield "it states nothing that can be shown: give an expression, an identity or evidence"
    refuted = any(one.expected == "refuted" for one in stated)
    if entry.verdict in ("corrected", "counterexample") and not (refuted or entry.evidence):
        yield f"the verdict {entry.verdict} needs what is refuted: an identity or a claim with expected='refuted'"
    if entry.verdict in ("experiment", "analogy") and not entry.evidence:
        yield f"the verdict {entry.verdict} needs numbers: evidence='module:function'"
    shown = any(one.expected == "proved" for one in stated)
    if entry.verdict.startswith("proved") and not (entry.expression or shown or entry.moments or entry.evidence):
        yield f"the verdict {entry.verdict} needs something that is proved"


def complete() -> None:
    """The catalogue is complete: what is added from here on are a user's own notes."""
    _DOCUMENTED.update(_ENTRIES)


def own(entry: Entry) -> bool:
    """Whether an entry is of a user's own notes."""
    return entry.id not in _DOCUMENTED


def remove(identifier: str) -> None:
    """Take an entry out again."""
    del _ENTRIES[identifier]


def get(identifier: str) -> Entry:
    """The entry of that identifier.

    Raises GradproofError with the nearest identifiers where there is none.
    """
    if identifier not in _ENTRIES:
        import difflib

        close = difflib.get_close_matches(identifier, _ENTRIES, 3)
        hint = f"; did you mean {' or '.join(close)}?" if close else "; `gradproof list` shows all"
        raise GradproofError(f"there is no entry {identifier}{hint}")
    return _ENTRIES[identifier]


def entries(topic: str | None = None) -> Iterator[Entry]:
    """All entries, or those of a topic, by chapter and topic; within a topic in the order of their registration."""
    ordered = sorted(_ENTRIES.values(), key=lambda entry: place(entry.id))
    return (entry for entry in ordered if topic is None or entry.topic == topic)


def known(identifier: str) -> bool:
    return identifier in _ENTRIES
