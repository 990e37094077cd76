"""The examples in the docstrings of every installed module, run as they are printed."""

import doctest
import importlib
import importlib.util
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGES = ("gradproof.symbolic", "gradproof.numeric", "gradproof.models", "gradproof.cli")
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def module_names() -> list[str]:
    """Every module of the four sub-packages, by name; only packages are imported to find them."""
    names = []
    for package in PACKAGES:
        path = importlib.import_module(package).__path__
        names += [package, *(found.name for found in pkgutil.walk_packages(path, package + ".", onerror=_fail))]
    return [name for name in names if not name.endswith("__main__")]


def _fail(name: str) -> None:
    raise ImportError(f"{name} cannot be imported")


def needs_torch(name: str) -> bool:
    spec = importlib.util.find_spec(name)
    source = Path(spec.origin).read_text(encoding="utf-8") if spec and spec.origin else ""
    return re.search(r"^\s*(?:>>> )?(?:import|from) torch\b", source, re.MULTILINE) is not None


@pytest.mark.parametrize("name", module_names())
def test_examples(name: str) -> None:
    if needs_torch(name):
        pytest.importorskip("torch")
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=OPTIONS)
    assert failed == 0, f"{failed} examples in {name} print something else, see above"


def test_symbolic_loads_neither_numpy_nor_torch() -> None:
    code = "import sys, gradproof.symbolic; print(*({'numpy', 'torch', 'matplotlib'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
