"""What is counted from the equations is what the generated code does: it is run over arrays that count."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

from gradproof.numeric.compile import compile_numpy
from gradproof.symbolic.counting import cost, with_sizes
from gradproof.symbolic.derive import derive

FREE = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "negative", "copyto", "isfinite"}


class Counting(np.ndarray):
    """An array that adds up the operations of everything that is done to it."""

    done: ClassVar[int] = 0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        plain = [np.asarray(x) if isinstance(x, Counting) else x for x in inputs]
        if out is not None:
            kwargs["out"] = tuple(np.asarray(x) if isinstance(x, Counting) else x for x in out)
        found = getattr(ufunc, method)(*plain, **kwargs)
        if ufunc is np.matmul:
            Counting.done += 2 * np.asarray(found).size * plain[0].shape[-1]
        elif method == "at":
            Counting.done += np.asarray(plain[1][0] if isinstance(plain[1], tuple) else plain[1]).size
        elif method in ("reduce", "accumulate"):
            Counting.done += plain[0].size
        elif ufunc.__name__ not in FREE and np.asarray(found).dtype.kind != "b":
            Counting.done += np.asarray(found).size
        return found.view(Counting) if isinstance(found, np.ndarray) else found

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        plain = [np.asarray(x) if isinstance(x, Counting) else x for x in args]
        if func is np.vdot:
            Counting.done += 2 * plain[0].size
        elif func is np.einsum:
            Counting.done += einsum_operations(plain[0], plain[1:])
        else:
            return super().__array_function__(func, types, args, kwargs)
        found = func(*plain, **kwargs)
        return found.view(Counting) if isinstance(found, np.ndarray) else found


def einsum_operations(spec: str, operands: list[np.ndarray]) -> int:
    inputs, _, output = spec.replace(" ", "").partition("->")
    sizes = {
        letter: n
        for own, a in zip(inputs.split(","), operands, strict=True)
        for letter, n in zip(own, a.shape, strict=True)
    }
    terms = int(np.prod([sizes[letter] for letter in sizes]))
    return terms * (len(operands) - 1 + (set(sizes) > set(output)))


# expression, declarations, numbers for the sizes, variables (all of them)
PROGRAMS: list[tuple[str, dict[str, str], dict[str, int], str | None]] = [
    ("sum(((silu(X @ W)*(X @ V)) @ O)*G)", {"X": "n,d", "W": "d,f", "V": "d,f", "O": "f,d", "G": "n,d"}, {"n": 60, "d": 50, "f": 70}, None),
    ("sum(tanh(tanh(X @ W) @ V)*G)", {"X": "n,d", "W": "d,f", "V": "f,d", "G": "n,d"}, {"n": 60, "d": 50, "f": 70}, None),
    ("sum((softmax(Q @ K.T / sqrt(d)) @ V)*G)", {"Q": "n,d", "K": "n,d", "V": "n,d", "G": "n,d"}, {"n": 60, "d": 70}, None),
    ("sum((X @ W - Y)**2)", {"X": "n,d", "W": "d,k", "Y": "n,k"}, {"n": 60, "d": 50, "k": 40}, None),
    ("x @ A @ x", {"A": "n,n", "x": "n"}, {"n": 100}, None),
    ("sum(x[t]*g)", {"x": "n", "t": "m:index=n", "g": "m"}, {"n": 500, "m": 5000}, None),
    ("sum(A @ B @ C)", {"A": "n,d", "B": "d,m", "C": "m,p"}, {"n": 60, "d": 50, "m": 40, "p": 30}, None),
    ("sum(cumsum(x)**2)", {"x": "n"}, {"n": 3000}, None),
    ("sum((kron(A, B) @ x)*g)", {"A": "m,n", "B": "p,q", "x": "n*q", "g": "m*p"}, {"m": 20, "n": 21, "p": 22, "q": 23}, "A"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "declared", "sizes", "wrt"), PROGRAMS, ids=[row[0] for row in PROGRAMS])
def test_the_generated_code_does_what_is_counted(
    text: str, declared: dict[str, str], sizes: dict[str, int], wrt: str | None
) -> None:
    derived = derive(text, declared, wrt)
    wanted = cost(derived.system.needed([derived.output, *(e.name for e in derived.results)]), None, ())
    counted = int(with_sizes(wanted.flops, sizes))
    rng = np.random.default_rng(0)
    given: dict[str, Any] = {}
    for name in derived.forward.inputs:
        array = derived.forward.arrays[name]
        shape = tuple(int(with_sizes(size, sizes)) for size in array.shape)
        drawn = (
            rng.integers(0, int(with_sizes(array.below, sizes)), shape)
            if array.below is not None
            else rng.normal(size=shape)
        )
        given[name] = drawn if array.below is not None else drawn.view(Counting)
    Counting.done = 0
    namespace: dict[str, Any] = {}
    exec(compile_numpy(derived).source, namespace)
    namespace["value_and_gradients"](**given)
    assert abs(Counting.done - counted) <= 0.15 * counted, (Counting.done, counted)
