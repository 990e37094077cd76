"""Random ways to read and to fill an array by indices, each with what torch's own indexing makes of it.

    y[i,j] = x[i,t[i,j]]            y[i] = x[2*i+1,w[t[i]]+1,-1]        y[i,j] = sum[k](x[i,k]*delta(t[i,k],j))
    x[1:,t,None,u[:,None]]

An axis is read by a letter, a shifted, reversed or spread letter, a sum of two, a number, or an array of integers whose
own axes are read in the same ways; letters may occur several times. The oracle evaluates every index on the grid of all
letters and lets torch read or add there; in NumPy's spelling, NumPy itself says which entries are read. Neither knows
anything of equations.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

LETTERS = {"i": "n", "j": "m", "k": "p", "l": "q"}
Grid = dict[str, Tensor]  # the values of each letter, along an axis of its own


@dataclass(frozen=True)
class Place:
    """An index: its text, the size of the axis that it reads, its letters, and its values on the grid."""

    text: str
    size: str
    letters: frozenset[str]
    at: Callable[[Grid], Tensor]
    bare: frozenset[str] = frozenset()  # letters whose range it tells


@dataclass
class Lookup:
    """An expression, the shapes of its arrays, their values, and the value of the expression as torch has it."""

    text: str = ""
    shapes: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    arrays: dict[str, Tensor] = field(default_factory=dict)
    forward: Callable[[dict[str, Tensor]], Tensor] = lambda arrays: torch.zeros(())


class Maker:
    """Makes one lookup from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.torch = torch.Generator().manual_seed(seed)
        self.sizes = {name: self.rng.randint(1, 4) for name in LETTERS.values()}
        self.sizes |= {"V": self.rng.randint(1, 5), "U": self.rng.randint(1, 5)}
        self.found = Lookup(sizes=self.sizes)

    def length(self, size: str) -> int:
        return int(eval(size, {}, self.sizes))

    def array(self, name: str, sizes: list[str], below: str | None = None) -> None:
        shape = [self.length(size) for size in sizes]
        if below is None:
            self.found.arrays[name] = torch.randn(shape, generator=self.torch, dtype=torch.float64)
            self.found.shapes[name] = ",".join(sizes)
        else:
            self.found.arrays[name] = torch.randint(self.length(below), shape, generator=self.torch)
            self.found.shapes[name] = f"{','.join(sizes)}:index={below}"

    def letter(self, letters: list[str]) -> Place:
        """A letter, shifted, reversed or spread; or a sum of two."""
        x = self.rng.choice(letters)
        n, one = LETTERS[x], frozenset(x)
        kind = self.rng.choice(["bare"] * 5 + ["shift", "reverse", "spread", "two"])
        if kind == "bare":
            return Place(x, n, one, lambda g: g[x], one)
        if kind == "shift":
            return Place(f"{x}+1", f"{n}+1", one, lambda g: g[x] + 1)
        if kind == "reverse":
            return Place(f"{n}-1-{x}", n, one, lambda g: self.sizes[n] - 1 - g[x])
        if kind == "spread":
            return Place(f"2*{x}+1", f"2*{n}", one, lambda g: 2 * g[x] + 1)
        y = self.rng.choice(letters)
        if x == y:
            return Place(x, n, one, lambda g: g[x], one)
        return Place(f"{x}+{y}", f"{n}+{LETTERS[y]}-1", frozenset((x, y)), lambda g: g[x] + g[y])

    def looked_up(self, letters: list[str], below: str, depth: int = 0) -> Place:
        """An entry of an array of integers."""
        inside = [self.place(letters, 0.2 if depth == 0 else 0.0, depth + 1) for _ in range(self.rng.choice((1, 1, 2)))]
        name = f"t{len(self.found.shapes)}"
        self.array(name, [place.size for place in inside], below)
        table = self.found.arrays[name]
        factor, shift = self.rng.choice(((1, 0), (1, 0), (1, 0), (1, 1), (-1, 0), (2, 1)))
        entry = f"{name}[{','.join(place.text for place in inside)}]"
        shift = self.length(below) - 1 if factor < 0 else shift
        shown = {(1, 0): entry, (1, 1): f"{entry}+1", (2, 1): f"2*{entry}+1"}
        return Place(
            f"{below}-1-{entry}" if factor < 0 else shown[factor, shift],
            {1: below if shift == 0 else f"{below}+1", -1: below, 2: f"2*{below}"}[factor],
            frozenset().union(*(place.letters for place in inside)),
            lambda g: factor * table[tuple(torch.broadcast_tensors(*(place.at(g) for place in inside)))] + shift,
            frozenset().union(*(place.bare for place in inside)),
        )

    def arrays_between(self, count: int) -> list[tuple[str, Tensor, str]]:
        """Arrays of whole numbers whose shapes broadcast."""
        common = self.rng.sample(list(LETTERS.values()), 2)
        found = []
        for _ in range(count):
            sizes = common[self.rng.choice((0, 1, 1, 2)) :]
            name, below = f"t{len(self.found.shapes)}", self.rng.choice("VU")
            spelled = name
            if len(sizes) == 1 and self.rng.random() < 0.4:
                sizes, spelled = common[:1], f"{name}[:,None]"
            self.array(name, sizes, below)
            found.append((spelled, self.found.arrays[name], below))
        return found

    def spelled(self) -> Lookup:
        """x[1:, t, None, 0] in NumPy's spelling."""
        rank = self.rng.randint(1, 4)
        kinds = [self.rng.choice(("slice", "number", "array", "array")) for _ in range(rank)]
        given = self.arrays_between(kinds.count("array"))
        texts, sizes, key = [], [], []
        for kind in kinds:
            while self.rng.random() < 0.15:
                texts.append("None")
                key.append(None)
            if kind == "slice":
                size = str(self.rng.randint(3, 5)) if self.rng.random() < 0.4 else self.rng.choice(("n+2", "m+2"))
                ends = [self.rng.choice(("", *"012", "-1", "-2")) for _ in range(2)]
                step = self.rng.choice(("", "", "-1", "2", "-2")) if size.isdigit() else self.rng.choice(("", "-1"))
                text = ":".join([*ends, step])
                entry = slice(*(int(part) if part else None for part in text.split(":")))
                if len(range(self.length(size))[entry]) == 0 or (not size.isdigit() and len(range(3)[entry]) == 0):
                    text, entry = ":", slice(None)
            elif kind == "number":
                size, text = "3", str(self.rng.randint(-3, 2))
                entry = int(text)
            else:
                text, values, size = given.pop()
                entry = (values[:, None] if "None" in text else values).numpy()
            texts.append(text)
            sizes.append(size)
            key.append(entry)
        if texts[-1] == ":" and self.rng.random() < 0.5:
            texts.pop()
        self.array("x", sizes)
        x = self.found.arrays["x"]
        read = torch.as_tensor(np.arange(x.numel()).reshape(x.shape)[tuple(key)].copy())
        letters = [f"i{axis}" for axis in range(read.ndim)]
        weight = "*".join(f"({letter}+1)" for letter in letters) or "1"
        entry = f"y[{','.join(letters)}]" if letters else "y"
        total = f"{weight}*({entry} + {entry}**2)"
        total = f"sum[{','.join(letters)}]({total})" if letters else total
        self.found.text = f"y = x[{','.join(texts) or ':'}]; {total}"

        def forward(arrays: dict[str, Tensor]) -> Tensor:
            y = arrays["x"].reshape(-1)[read]
            return (self.weights(y) * (y + y**2)).sum()

        self.found.forward = forward
        return self.found

    @staticmethod
    def weights(y: Tensor) -> Tensor:
        """A weight for every entry that depends on its place, so that an exchanged axis is seen."""
        found = torch.ones((), dtype=y.dtype)
        for size in y.shape:
            found = found[..., None] * torch.arange(1, size + 1, dtype=y.dtype)
        return found

    def place(self, letters: list[str], lookups: float = 0.5, depth: int = 0) -> Place:
        kind = self.rng.random()
        if kind < lookups:
            return self.looked_up(letters, self.rng.choice("VU"), depth)
        if kind > 0.92:
            text, size, value = self.rng.choice((("0", "V", 0), ("-1", "V", -1), ("1", "3", 1), ("-2", "4", -2)))
            value %= self.length(size)
            return Place(text, size, frozenset(), lambda g: torch.tensor(value))
        return self.letter(letters)

    def grid(self, letters: list[str]) -> Grid:
        sizes = [self.sizes[LETTERS[x]] for x in letters]
        views = [[-1 if k == axis else 1 for k in range(len(letters))] for axis in range(len(letters))]
        return {x: torch.arange(sizes[k]).view(views[k]) for k, x in enumerate(letters)}

    def read(self) -> Lookup:
        """y[letters] = x[places], with the letters that no place has alone given by a factor."""
        letters = self.rng.sample(list(LETTERS), self.rng.randint(1, 3))
        places = [self.place(letters) for _ in range(self.rng.randint(1, 4))]
        letters = [x for x in letters if any(x in place.letters for place in places)]
        self.array("x", [place.size for place in places])
        text = f"x[{','.join(place.text for place in places)}]"
        missing = [x for x in letters if not any(x in place.bare for place in places)]
        if missing:
            self.array("u", [LETTERS[x] for x in missing])
            text += f"*u[{','.join(missing)}]"
        outer = [x for x in letters if self.rng.random() < 0.8]
        inner = [x for x in letters if x not in outer]
        text = f"sum[{','.join(inner)}]({text})" if inner else text
        left = f"y[{','.join(outer)}]" if outer else "y"
        self.array("g", [LETTERS[x] for x in outer])
        self.found.text = f"{left} = {text}; sum(g*(y + y**2))"
        grid, shape = self.grid(letters), [self.sizes[LETTERS[x]] for x in letters]
        summed = [letters.index(x) for x in inner]
        order = [[x for x in letters if x in outer].index(x) for x in outer]

        def forward(arrays: dict[str, Tensor]) -> Tensor:
            value = arrays["x"][tuple(place.at(grid) for place in places)].expand(shape)
            if missing:
                value = value * arrays["u"][tuple(grid[x] for x in missing)]
            y = (value.sum(summed) if summed else value).permute(order)
            return (arrays["g"] * (y + y**2)).sum()

        self.found.forward = forward
        return self.found

    def filled(self) -> Lookup:
        """y[kept, new] = base + sum[gone](s[letters] * delta(t[…], new)): values added at places that lookups give."""
        letters = self.rng.sample(list(LETTERS), self.rng.randint(1, 3))
        gone = self.rng.sample(letters, self.rng.randint(1, len(letters)))
        kept = [x for x in letters if x not in gone]
        targets = [self.looked_up(letters, below) for below in self.rng.sample("VU", self.rng.choice((1, 1, 2)))]
        new = ["a", "b"][: len(targets)]
        self.array("x", [LETTERS[x] for x in letters])
        axes = self.rng.sample([*kept, *new], len(kept) + len(new))
        sizes = {**LETTERS, **{x: target.size for x, target in zip(new, targets, strict=True)}}
        self.array("g", [sizes[x] for x in axes])
        self.array("base", [sizes[x] for x in axes])
        deltas = "*".join(f"delta({target.text},{x})" for target, x in zip(targets, new, strict=True))
        total = f"sum[{','.join(gone)}](x[{','.join(letters)}]*{deltas})"
        at = ",".join(axes)
        self.found.text = f"y[{at}] = base[{at}] + {total}; sum(g*(y + y**2))"
        grid, shape = self.grid(letters), [self.sizes[LETTERS[x]] for x in letters]

        def forward(arrays: dict[str, Tensor]) -> Tensor:
            places = {x: grid[x] for x in kept} | {x: t.at(grid) for x, t in zip(new, targets, strict=True)}
            index = tuple(places[x].expand(shape) for x in axes)
            y = arrays["base"].index_put(index, arrays["x"], accumulate=True)
            return (arrays["g"] * (y + y**2)).sum()

        self.found.forward = forward
        return self.found


def lookup(seed: int) -> Lookup:
    """One random lookup: of four, two read an array, one fills one, one is in NumPy's spelling."""
    maker = Maker(seed)
    return (maker.read, maker.filled, maker.read, maker.spelled)[seed % 4]()
