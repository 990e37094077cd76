"""Verify the catalogue: for each entry run what its kind demands, and say what was compared and how far apart."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from gradproof.numeric.crosschecks import Row, crosscheck
from gradproof.numeric.oracles import find
from gradproof.numeric.samples import Oracle
from gradproof.symbolic.catalogue import Entry
from gradproof.symbolic.catalogue.derivation import derive_entry
from gradproof.symbolic.catalogue.evidence import rows
from gradproof.symbolic.catalogue.proof import agrees, derived_moment, prove
from gradproof.symbolic.catalogue.verdict import NOT_COMPARED, judged, verdict_of
from gradproof.symbolic.deriving.derivation import Derivation
from gradproof.symbolic.errors import GradproofError
from gradproof.symbolic.phrases import joined, phrase

KINDS = {"jacobian": "Jacobian", "propagation": "Jacobian", "hessian": "Hessian", "tangent": "tangent"}


class DeviceError(GradproofError):
    """A device that was asked for and is not there."""


@dataclass(frozen=True)
class Result:
    """One entry: what was compared, the largest relative error with the tolerance that it had to meet, and the time."""

    id: str
    status: str  # passed, failed or skipped
    compared: str
    max_rel_error: float | None = None
    tolerance: float | None = None
    seconds: float = 0.0
    problems: tuple[str, ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def chosen_device(wanted: str) -> tuple[str, str]:
    """The torch device for `auto`, `cpu` or `cuda`, and its name in words.

    Raises DeviceError for `cuda` where there is none.
    """
    try:
        import torch
    except ImportError:
        if wanted == "cuda":
            raise DeviceError("there is no CUDA device: torch is not installed") from None
        return "cpu", "CPU, without torch (pip install 'gradproof[verify]')"
    available = torch.cuda.is_available()
    if wanted == "cuda" and not available:
        raise DeviceError(
            f"there is no CUDA device that torch {torch.__version__} can use; leave --device out, or say cpu"
        )
    if available and wanted != "cpu":
        return "cuda", f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    return "cpu", f"CPU, torch {torch.__version__}"


def verify(
    entries: Iterable[Entry], device: str = "cpu", progress: Callable[[Entry], None] | None = None
) -> list[Result]:
    """Verify entries one after the other; `progress` is called before each."""
    found = []
    for entry in entries:
        if progress is not None:
            progress(entry)
        found.append(verify_entry(entry, device))
    return found


def verify_entry(entry: Entry, device: str = "cpu") -> Result:
    """Everything that an entry states, checked now.

    >>> from gradproof.symbolic.catalogue import get
    >>> verify_entry(get("softmax.shift")).status
    'passed'
    """
    start = time.perf_counter()
    work = Work(entry, device)
    for part in (work.gradients, work.identities, work.claims, work.moments, work.evidence, work.statement):
        try:
            part()
        except Exception as error:  # whatever goes wrong in one entry, the others are verified
            kind = "" if isinstance(error, GradproofError) else f"{type(error).__name__}: "
            work.problems.append(f"{part.__name__}: {kind}{error}")
    status = "failed" if work.problems else "passed" if work.compared else "skipped"
    compared = [row for row in work.rows if row.error is not None]
    worst = max(compared, key=lambda row: (row.error or 0.0) / row.tolerance, default=None)
    return Result(
        entry.id,
        status,
        joined("; ", work.compared),
        None if worst is None else worst.error,
        None if worst is None else worst.tolerance,
        round(time.perf_counter() - start, 3),
        tuple(work.problems),
    )


class Work:
    """The checks of one entry; what fails is written to `problems`."""

    def __init__(self, entry: Entry, device: str) -> None:
        self.entry, self.device = entry, device
        self.compared: list[str] = []
        self.problems: list[str] = []
        self.rows: tuple[Row, ...] = ()

    def gradients(self) -> None:
        """Generated code against torch, differences and mpmath."""
        if not self.entry.expression:
            return
        derivation = derive_entry(self.entry)
        report = crosscheck(derivation, device=self.device, oracle=oracle_of(self.entry, derivation))
        self.rows = report.rows
        self.problems += [
            f"{row.name} against {row.against}: the relative error is {row.error:.3g}, above {row.tolerance:g}"
            for row in report.rows
            if row.error is not None and not row.passed
        ]
        count = len(derivation.gradients)
        what = KINDS.get(self.entry.mode) or (phrase("{} gradients", count) if count > 1 else "gradient")
        sources = dict.fromkeys(row.against for row in report.rows if row.error is not None)
        self.compared.append(phrase("value and {}: {}", what, joined(", ", sources)))

    def identities(self) -> None:
        verdicts = [prove(identity) for identity in self.entry.identities]
        for identity, proof in zip(self.entry.identities, verdicts, strict=True):
            if not agrees(proof.verdict, identity.expected):
                self.problems.append(
                    f"{identity.says or identity.left} is {proof.verdict}, not {identity.expected}: {proof.how}"
                )
        self._count("identity", "identities", [proof.verdict for proof in verdicts])

    def claims(self) -> None:
        found = []
        for claim in self.entry.claims:
            verdict = judged(claim)
            found.append(verdict.verdict)
            if not agrees(verdict.verdict, claim.expected):
                self.problems.append(
                    f"the claim {claim.claim} is {verdict.verdict}, not {claim.expected}: {verdict.how}"
                )
        self._count("claim", "claims", found)

    def statement(self) -> None:
        if verdict_of(self.entry) == NOT_COMPARED:
            self.compared.append("statement not compared")

    def moments(self) -> None:
        for moment in self.entry.moments:
            value, right = derived_moment(moment)
            if not right:
                self.problems.append(f"the {moment.kind} of {moment.expression} is {value}, not {moment.value}")
        self._count("moment", "moments", ["derived"] * len(self.entry.moments))

    def evidence(self) -> None:
        found = rows(self.entry)
        self.problems += [str(row) for row in found if not row.passed]
        self._count("row of evidence", "rows of evidence", [""] * len(found))

    def _count(self, one: str, many: str, verdicts: Sequence[str]) -> None:
        if verdicts:
            kinds = {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts) if verdict}
            shown = joined(
                ", ", (phrase("{count} {things}", count=count, things=verdict) for verdict, count in kinds.items())
            )
            told = phrase("{count} {things}", count=len(verdicts), things=one if len(verdicts) == 1 else many)
            self.compared.append(phrase("{} ({})", told, shown) if kinds else told)


def oracle_of(entry: Entry, derivation: Derivation) -> Oracle | None:
    """The hand-written torch forward of an entry; None where there is none (torch then reads the expression itself)."""
    if importlib.util.find_spec("torch") is None:
        return None
    written = find(entry.id)
    if written is None:
        return None
    names = derivation.forward.inputs

    def forward(tensors: Mapping[str, Any], sizes: Mapping[str, int]) -> Any:
        return written(**{name: tensors[name] for name in names})

    return forward
