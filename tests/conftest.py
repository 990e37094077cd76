"""What every test starts from."""

import sys

import pytest


@pytest.fixture(autouse=True)
def _torch_default_type():
    """A test may set torch's default type for itself; the next one starts from float32 again."""
    yield
    if "torch" in sys.modules:
        sys.modules["torch"].set_default_dtype(sys.modules["torch"].float32)
