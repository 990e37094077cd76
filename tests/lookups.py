"""Random ways to read and to fill an array by indices, each with what torch's own indexing makes of it.

    y[i,j] = x[i,t[i,j]]            y[i] = x[2*i+1,w[t[i]],-1]          y[i,j] = sum[k](x[i,k]*delta(t[i,k],j))

An axis is read by a letter, a shifted, reversed or spread letter, a sum of two, a number, or an array of integers whose
own axes are read in the same ways; letters may occur several times. The oracle evaluates every index on the grid of all
letters and lets torch read or add there: it knows nothing of equations.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

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
        return Place(
            f"{name}[{','.join(place.text for place in inside)}]",
            below,
            frozenset().union(*(place.letters for place in inside)),
            lambda g: table[tuple(torch.broadcast_tensors(*(place.at(g) for place in inside)))],
            frozenset().union(*(place.bare for place in inside)),
        )

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
    """One random lookup; every third fills an array, the others read one."""
    maker = Maker(seed)
    return maker.filled() if seed % 3 == 2 else maker.read()
