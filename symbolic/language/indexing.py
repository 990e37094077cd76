"""What stands between index brackets: letters, numbers, slices, new axes, lookups and entries of a recurrence."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod

import sympy
from sympy import Expr, Integer, S

from gradproof.symbolic.equations.expr import Index
from gradproof.symbolic.errors import ShapeError
from gradproof.symbolic.language.builder import Builder, Letter
from gradproof.symbolic.language.operators import CONSTANTS
from gradproof.symbolic.language.recurrence import Recurrence
from gradproof.symbolic.language.values import Value
from gradproof.symbolic.language.whitelist import items


class Indexing(ABC):
    """The part of a reader that reads subscripts; `free` are letters that an expression without a name leaves open."""

    b: Builder
    recurrences: dict[str, Recurrence]
    free: dict[str, Letter] | None

    @abstractmethod
    def visit(self, node: ast.expr) -> Value:
        """The value of any expression."""

    def index_value(self, node: ast.expr) -> Expr:
        value = self.visit(node)
        if value.rank or (not value.expr.is_integer and not value.expr.atoms(Index)):
            self.b.fail(f"{ast.unparse(node)} cannot be used as an index", node)
        return value.expr

    def visit_Subscript(self, node: ast.Subscript) -> Value:
        if isinstance(node.value, ast.Name) and node.value.id in self.recurrences:
            found = self.recurrences[node.value.id]
            if any(isinstance(part, (ast.Slice, ast.UnaryOp)) for part in items(node.slice)):
                found.finish()  # a slice, or counted from the end: it has all its pieces
            if not found.complete:
                return found.read([self.index_value(part) for part in items(node.slice)], node)
        preferred, self.b.preferred = self.b.preferred, None
        value = self.visit(node.value)
        parts = list(items(node.slice))
        axes = sum(not (isinstance(part, ast.Constant) and part.value is None) for part in parts)
        if axes > value.rank:
            self.b.fail(f"{axes} indices for an array of shape {value.shape}", node, ShapeError)
        mapping: dict[Index, Expr] = {}
        new_axes: list[tuple[Index, Expr]] = []
        position = 0
        for part in parts:
            if isinstance(part, ast.Constant) and part.value is None:
                new_axes.append((self.b.new(), S.One))
                continue
            letter, size = value.letters[position], value.sizes[position]
            index, axis = self.item(part, size, isinstance(node.value, ast.Name) and node.value.id in self.recurrences)
            mapping[letter] = index
            new_axes += axis
            position += 1
        if isinstance(node.value, ast.Name) and node.value.id in self.b.arrays and len(mapping) == len(parts):
            self.b.note_letters(node.value.id, list(map(self.written, parts)))
        rest = list(zip(value.letters[position:], value.sizes[position:], strict=True))
        expr = value.expr.xreplace(mapping)
        self.b.preferred = preferred
        axes_now = [*new_axes, *rest]
        return Value(expr, tuple(x for x, _ in axes_now), tuple(size for _, size in axes_now))

    def written(self, part: ast.expr) -> str:
        """The letter of an index: i of i and of i+1, none of i+j."""
        names = {node.id for node in ast.walk(part) if isinstance(node, ast.Name) and self.b.letter(node.id)}
        plain = not any(isinstance(node, (ast.Subscript, ast.Slice, ast.Mult)) for node in ast.walk(part))
        return names.pop() if plain and len(names) == 1 else ""

    def item(self, part: ast.expr, size: Expr, partly: bool) -> tuple[Expr, list[tuple[Index, Expr]]]:
        """What one item between the brackets reads, and the axes that it leaves."""
        if isinstance(part, ast.Slice):
            return self.slice(part, size)
        if isinstance(part, ast.Name) and self.free is not None and self.is_new_letter(part.id):
            self.b.add_letter(part.id, self.free)
        value = self.visit(part)
        index = value.expr
        if isinstance(index, Integer) and index < 0:
            index = size + index
        if getattr(index, "indices", None) is not None:
            self.b.check_lookup(index.name, size, part)
        elif index.is_integer is not True or value.rank:
            self.b.fail(f"{ast.unparse(part)} cannot be used as an index", part)
        else:
            self.b.read(index, size, part, partly)
        return index, list(zip(value.letters, value.sizes, strict=True))

    def is_new_letter(self, name: str) -> bool:
        b = self.b
        return b.letter(name) is None and name not in b.arrays and name not in b.sizes and name not in CONSTANTS

    def slice(self, part: ast.Slice, size: Expr) -> tuple[Expr, list[tuple[Index, Expr]]]:
        """NumPy's half-open slice with a whole step; bounds may be sizes and negative."""
        step = S.One if part.step is None else self.index_value(part.step)
        if not isinstance(step, Integer) or step == 0:
            self.b.fail("the step of a slice is a whole number other than 0", part)
        down = step < 0
        start = self.bound(part.lower, size, size - 1 if down else S.Zero)
        stop = self.bound(part.upper, size, S.NegativeOne if down else size)
        span = (start - stop if down else stop - start).expand()
        length = sympy.ceiling(span / abs(step)) if abs(step) != 1 else span
        if abs(step) != 1 and not isinstance(length, Integer):
            self.b.fail(
                f"the length {span}/{abs(step)} of this slice is not known to be whole; give the size as a number", part
            )
        if isinstance(length, Integer) and length < 1:
            self.b.fail("this slice is empty", part, ShapeError)
        letter = self.b.new()
        index = start + step * letter
        self.b.ranges[letter] = (letter, S.Zero, length)
        self.b.given.add(letter)
        self.b.read(index, size, part)
        return index, [(letter, length)]

    def bound(self, node: ast.expr | None, size: Expr, default: Expr) -> Expr:
        if node is None:
            return default
        value = self.index_value(node)
        if isinstance(value, Integer) and value < 0:
            value = size + value
        if isinstance(value, Integer) and isinstance(size, Integer):
            value = min(value, size)
        return value
