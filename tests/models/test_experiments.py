"""The experiments: seeded, and the conclusion follows from the numbers."""

import importlib

import pytest

from gradproof.models.errors import DataError
from gradproof.models.experiments import EXPERIMENTS, Experiment, concluded, run
from gradproof.symbolic.catalogue import entries
from gradproof.symbolic.catalogue.evidence import at_most, rows

QUICK = [name for name in EXPERIMENTS if name != "block_depth"]  # that one needs torch


@pytest.mark.parametrize("name", QUICK)
def test_experiment(name: str, tmp_path) -> None:
    found = run(name)
    assert all(check.passed for check in found.checks), [str(c) for c in found.checks if not c.passed]
    assert len(found.table().splitlines()) == len(found.rows) + 1
    assert all(len(row) == len(found.columns) for row in found.rows)
    pytest.importorskip("matplotlib")
    assert found.figure(tmp_path / "figure.png").read_bytes()[:4] == b"\x89PNG"


def test_seeded() -> None:
    module = importlib.import_module("gradproof.models.experiments.saturation")
    assert module.norms(16, True) == module.norms(16, True)


def test_conclusion_follows_from_the_checks() -> None:
    good, bad = at_most("small", 1, 2), at_most("large", 3, 2)
    assert concluded([good], "yes", "no") == "yes"
    assert concluded([good, bad], "yes", "no") == "no (not seen: large)"


def test_without_double_descent_it_is_not_concluded() -> None:
    module = importlib.import_module("gradproof.models.experiments.double_descent")
    falling = {p: (0.0, 1.0 / p) for p in module.FEATURES}
    assert not all(check.passed for check in module._checks(falling))


def test_dimension_of_a_line() -> None:
    numpy = pytest.importorskip("numpy")
    module = importlib.import_module("gradproof.models.experiments.dimension")
    line = numpy.outer(numpy.random.default_rng(0).normal(size=800), numpy.ones(3))
    assert abs(module.two_nearest(line) - 1) < 0.15


def test_unknown_name() -> None:
    with pytest.raises(DataError, match="double_descent"):
        run("descent")


def test_depth() -> None:
    pytest.importorskip("torch")
    found = run("block_depth")
    assert isinstance(found, Experiment) and all(check.passed for check in found.checks)


def test_entries_name_experiments_that_exist() -> None:
    named = [entry for entry in entries() if ".experiments." in entry.evidence]
    assert len(named) >= 5
    for entry in named:
        module, _, function = entry.evidence.partition(":")
        assert callable(getattr(importlib.import_module(module), function))
    assert rows(next(entry for entry in named if entry.id == "ntk.dynamics"))
