"""Each row of the table of functions agrees with its own value of high precision: spellings, derivatives, no SciPy."""

import sys

import mpmath
import numpy as np
import pytest

from gradproof.numeric.compile import compile_numpy, compile_torch, source_for
from gradproof.symbolic import derive
from gradproof.symbolic.equations.functions import ELEMENTWISE

PLACES = np.array([-2.3, -0.4, 0.3, 0.75, 1.0, 3.5])
LAST = {"ddsigma", "tetragamma"}  # their derivatives have no names


def places(name: str) -> np.ndarray:
    return PLACES[PLACES > 0] if name == "log" else PLACES


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("name", sorted(ELEMENTWISE.keys() - LAST))
def test_values_and_slopes(name: str, library: str) -> None:
    if library == "torch":
        pytest.importorskip("torch")
    found = derive(f"sum({name}(x))", {"x": "n"}, "x")
    function = compile_numpy(found) if library == "numpy" else compile_torch(found, device="cpu")
    x, row = places(name), ELEMENTWISE[name]
    value, slopes = function(x=x)
    assert np.isclose(float(value), float(sum(row.value(mpmath.mpf(a)) for a in x)), rtol=1e-12)
    wanted = [float(mpmath.diff(row.value, mpmath.mpf(a))) for a in x]
    assert np.allclose(np.asarray(slopes["x"]), wanted, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", sorted(ELEMENTWISE))
def test_numbers_in_sizes(name: str) -> None:
    """A function of sizes alone is Python, whatever the array's precision is."""
    function = compile_numpy(derive(f"sum(x) * {name}(n / 8)", {"x": "n"}, "x"))
    value, slopes = function(x=np.ones(6, np.float32))
    assert slopes["x"].dtype == np.float32
    assert np.allclose(slopes["x"], float(ELEMENTWISE[name].value(mpmath.mpf(0.75))), rtol=1e-6)
    assert np.isclose(value, 6 * slopes["x"][0], rtol=1e-6)


@pytest.mark.parametrize("name", ["erf", "lgamma"])
def test_code_runs_without_scipy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = source_for("numpy", derive(f"sum(c * {name}(x))", {"x": "n", "c": "n"}, "c"))
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    scope: dict = {}
    exec(source, scope)
    _, slopes = scope["value_and_gradients"](PLACES, np.ones(len(PLACES)))
    assert np.allclose(slopes["c"], [float(ELEMENTWISE[name].value(mpmath.mpf(a))) for a in PLACES], rtol=1e-13)
