"""Recurrences as loops over one axis."""

from __future__ import annotations

from collections.abc import Sequence

from gradproof.numeric.lower import Lowering
from gradproof.numeric.statements import Statement
from gradproof.symbolic.errors import GradproofError
from gradproof.symbolic.system import System


def lower_recurrence(low: Lowering, system: System, group: Sequence[str]) -> list[Statement]:
    raise GradproofError("recurrences cannot be lowered yet")
