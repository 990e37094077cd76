"""Hostile input gives a result or a clear error, in time, and runs nothing: 10,000 texts in the slow mode."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hostile import case, random

SCRIPT = Path(__file__).resolve().parents[2] / "hostile.py"


def tried(count: int, seed: int) -> list[dict]:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(count), str(seed)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    *wrong, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert last["tried"] == count
    return wrong


def test_hostile_input() -> None:
    assert tried(500, 1) == []


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(10, 20))
def test_ten_thousand_hostile_inputs(seed: int) -> None:
    assert tried(1000, seed) == []


def test_the_inputs_are_hostile_and_not_all_wrong() -> None:
    """Some of the mutated texts still read, so that the whole way is tried."""
    from gradproof.symbolic.errors import GradproofError
    from gradproof.symbolic.language.reader import build, declare

    rng, good = random.Random(1), 0
    for _ in range(100):
        text, declared = case(rng)
        try:
            build(text, declare(*declared))
            good += 1
        except GradproofError:
            pass
    assert 5 <= good <= 60
