"""The rooms of the house stand in order: a room imports only from rooms that are listed before it.

A room is a folder, or a file that lies directly in one of the four packages. Lazy imports and those for types count.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ORDER = {
    "symbolic": [
        "errors",
        "phrases",
        "equations",
        "folding",
        "printing",
        "language",
        "judging",
        "moments",
        "counting",
        "deriving",
        "checking",
        "catalogue",
        "derive",
    ],
    "numeric": [
        "lowering",
        "passes",
        "emitters",
        "backends",
        "pipeline",
        "compile",
        "random_inputs",
        "reference",
        "oracles",
        "samples",
        "autograd",
        "crosschecks",
        "verify",
        "check_file",
    ],
    "models": [
        "errors",
        "files",
        "data",
        "nets",
        "decoding",
        "training",
        "trained",
        "torch",
        "standalone",
        "evidence",
        "experiments",
    ],
    "cli": ["chinese", "output", "book", "bench", "commands", "main"],
}
PACKAGES = ["symbolic", "numeric", "models", "cli"]


def modules() -> list[Path]:
    return [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def room(parts: tuple[str, ...]) -> tuple[str, str]:
    """Package and room of a module, from the parts of its name: (symbolic, folding)."""
    return parts[0], parts[1] if len(parts) > 1 else ""


def imported(path: Path) -> Iterator[tuple[str, ...]]:
    """Every module of gradproof that a file names in an import, as parts without `gradproof`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "gradproof":
            for alias in node.names:
                parts = (*node.module.split(".")[1:], alias.name)
                place = ROOT.joinpath(*parts)
                yield parts if place.is_dir() or place.with_suffix(".py").is_file() else parts[:-1]
        elif isinstance(node, ast.Import):
            yield from (tuple(a.name.split(".")[1:]) for a in node.names if a.name.startswith("gradproof."))


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_file_imports_only_from_the_rooms_before_its_own(path: Path) -> None:
    package, own = room(path.relative_to(ROOT).with_suffix("").parts)
    for parts in imported(path):
        if not parts:
            continue
        other, there = room(parts)
        assert PACKAGES.index(other) <= PACKAGES.index(package), f"{package} imports {'.'.join(parts)}"
        if package in ORDER and other == package and own != "__init__" and there not in ("", own):
            order = ORDER[package]
            assert order.index(there) < order.index(own), f"{package}/{own} imports {'.'.join(parts)}"


@pytest.mark.parametrize("package", ORDER)
def test_every_room_has_its_place(package: str) -> None:
    rooms = {room(path.relative_to(ROOT).with_suffix("").parts)[1] for path in (ROOT / package).rglob("*.py")}
    assert rooms - {"__init__"} == set(ORDER[package])
