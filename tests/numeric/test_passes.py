"""What the passes make of a program: the statements of small ones, and how many arrays the blocks of models need."""

from __future__ import annotations

from typing import Any

import pytest

from gradproof.models.nets.block import Equations, derived
from gradproof.models.nets.recurrent_equations import layer
from gradproof.models.nets.transformer_equations import attention, feed_forward, loss, norm
from gradproof.numeric.backends import emitter
from gradproof.numeric.compile import builder
from gradproof.numeric.lowering.program import Assign, Loop, Program, Update, Write, walk
from gradproof.numeric.pipeline import Builder
from gradproof.symbolic.language.reader import build

# what is computed, the shapes, the result, and its lines in place
LINES = {
    "sums start with the product": (
        "Y = X + C @ W + b",
        {"X": "n,d", "C": "n,k", "W": "k,d", "b": "d"},
        ["Y = C @ W", "Y += b", "Y += X"],
    ),
    "a function writes into what is new": (
        "Y = exp(S - c)",
        {"S": "n,m", "c": ""},
        ["Y = S - c", "np.exp(Y, out=Y)"],
    ),
    "what is read for the last time gives its memory": (
        "c = exp(a); d = c * b; Y = d + a",
        {"a": "n", "b": "n"},
        ["c = np.exp(a)", "d = np.multiply(c, b, out=c)", "Y = np.add(d, a, out=d)"],
    ),
    "an argument keeps its memory": ("Y = exp(a)", {"a": "n"}, ["Y = np.exp(a)"]),
    "a mask is added": (
        "Y = where(M == 1, A @ B, -inf)",
        {"A": "b,n,d", "B": "d,m", "M": "m:index=2"},
        [
            "Y = (A.reshape(-1, d) @ B).reshape(b, n, m)",
            "Y += np.where(M == 1, 0, -np.inf).astype(A.dtype)",
        ],
    ),
    "one entry of each row": (
        "Y[b,v] = P[b,v] - (v == y[b])",
        {"P": "B,N", "y": "B:index=N"},
        ["Y = P.copy()", "Y[np.arange(B), y] -= 1"],
    ),
    "a sum of products over the last axis": (
        "Y[i] = sum[j](A[i,j]*B[i,j])",
        {"A": "n,m", "B": "n,m"},
        ["Y = np.einsum('...i,...i->...', A, B)"],
    ),
    "a sum of products over the first axis": (
        "Y[j] = sum[i](A[i,j]*B[i,j])",
        {"A": "n,m", "B": "n,m"},
        ["Y = np.einsum('ij,ij->j', A, B)"],
    ),
    "a mean is a product": ("Y = mean(X, axis=1)", {"X": "n,m"}, ["Y = X @ np.full(m, 1 / m, dtype=X.dtype)"]),
    "a solution instead of an inverse": ("Y = inv(S) @ x", {"x": "n", "S": "n,n"}, ["Y = np.linalg.solve(S, x)"]),
    "a step of a loop is written where it belongs": (
        "Y[0,b,k] = s[b,k]; Y[t+1,b,k] = x[t,b,k] + sum[j](Y[t,b,j]*W[j,k])",
        {"s": "B,d", "x": "T,B,d", "W": "d,d"},
        [
            "Y = np.empty((T + 1, B, d), dtype=s.dtype)",
            "Y[0] = s",
            "for t in range(1, T + 1):",
            "    np.matmul(Y[t - 1], W, out=Y[t])",
            "    Y[t] += x[t - 1]",
        ],
    ),
    "values of equal places are added in turn": (
        "Y[v,k] = E[v,k] + sum[t]((v == w[t])*X[t,k])",
        {"X": "T,d", "w": "T:index=V", "E": "V,d"},
        ["Y = E.copy()", "add_rows(Y, w, X)"],
    ),
}


@pytest.mark.parametrize("what", LINES)
def test_the_lines_of_a_small_program(what: str) -> None:
    text, shapes, lines = LINES[what]
    made = builder(emitter("in-place numpy"), build(text, shapes), ["Y"])
    spelled = [" = ".join(pair) for pair in made.emitter.assignments(made.program.statements)]
    assert "\n    ".join(spelled).split("\n    ") == lines


# a block: at most so many temporaries (arrays that no equation names), at least so many values written in place
BLOCKS: dict[str, tuple[Equations, int, int]] = {
    "attention": (attention(False, True, False, False), 4, 18),
    "layernorm": (norm("layernorm"), 1, 5),
    "rmsnorm": (norm("rmsnorm"), 0, 2),
    "relu": (feed_forward("relu", False), 0, 4),
    "gelu": (feed_forward("gelu", True), 2, 10),
    "loss": (loss(False, True, False), 3, 8),
    "gru": (layer("gru", encoder=True, reverse=True), 7, 35),
    "lstm": (layer("lstm", context=True), 9, 45),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_needs_no_more_arrays_than_this(name: str) -> None:
    block, temporaries, in_place = BLOCKS[name]
    program = whole_program(block)
    assert len(program.temporaries) <= temporaries
    assert sum(map(writes, walk(program.statements))) >= in_place


def writes(statement: object) -> bool:
    """Whether a statement changes an array instead of making one."""
    return isinstance(statement, (Update, Write)) or (isinstance(statement, Assign) and statement.out is not None)


def whole_program(block: Equations) -> Program:
    system = derived(block)
    return builder(
        emitter("in-place numpy"), system, [*block.outputs, *map(system.adjoint_of, block.variables)]
    ).program


@pytest.mark.parametrize("name", ["gru", "lstm"])
def test_a_step_of_a_recurrence_copies_nothing(name: str) -> None:
    """What a step stores it computes there: no new array is made and copied, but for arrays that are only looked at."""
    loops = [s for s in whole_program(BLOCKS[name][0]).statements if isinstance(s, Loop)]
    copied = [
        s for s in walk(loops) if isinstance(s, Assign) and not s.whole and s.value.op in ("matmul", "add", "mul")
    ]
    assert loops
    assert copied == []


class Counting(Builder):
    """Counts how often the schedule measures a line or a part."""

    asked = 0

    def line(self, *args: Any) -> int:
        Counting.asked += 1
        return super().line(*args)

    def part(self, *args: Any) -> int:
        Counting.asked += 1
        return super().part(*args)


def test_a_wide_sum_is_broken_up_with_work_that_grows_like_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradproof.numeric.compile.Builder", Counting)
    counts = []
    for size in (35, 70, 140):
        Counting.asked = 0
        text = "L = " + " + ".join(f"sum(sin(x*a{k}))" for k in range(size))
        builder(emitter("numpy"), build(text, {"x": "n", **{f"a{k}": "n" for k in range(size)}}))
        counts.append(Counting.asked)
    assert counts[1] <= 2.2 * counts[0]
    assert counts[2] <= 2.2 * counts[1]
