"""Work grows in proportion to the number of equations: counted, never timed.

Every call of a Python function counts, ours and SymPy's; twice the layers may take at most 2.2 times the calls.
"""

import cProfile
from collections.abc import Callable

import pytest

from gradproof.numeric.compile import compile_numpy
from gradproof.symbolic.derive import derive

LOWERED = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")

Formula = tuple[str, dict[str, str]]


def layers(count: int) -> Formula:
    """tanh(W h), each layer with weights of its own."""
    text = "; ".join(f"h{k + 1} = tanh(W{k} @ h{k})" for k in range(count))
    return f"{text}; sum(h{count}**2)", {"h0": "d", **{f"W{k}": "d,d" for k in range(count)}}


def attention(count: int) -> Formula:
    """Blocks of self-attention with a residual."""
    text = "; ".join(
        f"A{k} = softmax(X{k} @ Q{k} @ (X{k} @ K{k}).T / sqrt(d)); X{k + 1} = A{k} @ X{k} @ V{k} + X{k}"
        for k in range(count)
    )
    return f"{text}; sum(X{count}**2)", {"X0": "n,d", **{f"{w}{k}": "d,d" for k in range(count) for w in "QKV"}}


def summands(count: int) -> Formula:
    """A long chain of +."""
    return " + ".join(f"sum(x{k}**2)" for k in range(count)), {f"x{k}": "n" for k in range(count)}


def counted(run: Callable[[], object]) -> tuple[int, object]:
    """How many calls something makes, and what it returns."""
    profile = cProfile.Profile(builtins=False)
    result = profile.runcall(run)
    return sum(entry.callcount for entry in profile.getstats()), result


def work(formula: Formula, wrt: list[str] | None = None) -> dict[str, int]:
    """The calls of each stage, from the text to the code."""
    text, shapes = formula
    derived, found = counted(lambda: derive(text, shapes, wrt))
    return {
        "derive": derived,
        "print": counted(lambda: str(found))[0],
        "latex": counted(lambda: found.latex())[0],
        "steps": counted(lambda: [str(step) for step in found.steps])[0],
        "code": counted(lambda: compile_numpy(found))[0],
    }


GROWING = [
    ("layers, by all weights", layers, None, (25, 50)),
    ("layers, by the first weight", layers, ["W0"], (25, 50)),
    ("attention blocks, by everything", attention, None, (3, 6)),
]


@pytest.mark.parametrize(("what", "formula", "wrt", "sizes"), GROWING)
def test_twice_the_equations_take_twice_the_work(what, formula, wrt, sizes) -> None:
    few, many = (work(formula(size), wrt) for size in sizes)
    ratios = {stage: many[stage] / few[stage] for stage in few}
    assert all(ratio <= 2.2 for ratio in ratios.values()), (what, ratios)


def test_a_hessian_vector_product_grows_in_proportion_to_the_layers() -> None:
    few, many = (counted(lambda size=size: derive(*layers(size), "h0", hvp="v"))[0] for size in (10, 20))
    assert many / few <= 2.2


def test_a_chain_of_sums_is_no_depth() -> None:
    found = derive(*summands(200))
    assert [str(gradient) for gradient in found.gradients.values()] == [
        f"2 x{str(k).translate(LOWERED)}" for k in range(200)
    ]


def test_a_function_nested_fifty_deep() -> None:
    found = derive("tanh(" * 50 + "x" + ")" * 50, {"x": ""})
    assert str(found.gradients["x"]).count("(1 − ") == 50


@pytest.mark.parametrize("power", [4, 8, 12, 16])
def test_the_trace_of_a_power(power: int) -> None:
    found = derive(f"trace({'@'.join('A' * power)})", {"A": "n,n"})
    assert str(found.gradients["A"]) == f"{power} (A{str(power - 1).translate(RAISED)})ᵀ"


def test_a_long_chain_prints_the_recursion_of_its_layers() -> None:
    assert derive(*layers(6), "W0").lines()[6:] == [
        "h̄₅ = 2 W₅ᵀ(h₆ ⊙ (1 − h₆²))",
        "h̄₄ = W₄ᵀ(h̄₅ ⊙ (1 − h₅²))",
        "h̄₃ = W₃ᵀ(h̄₄ ⊙ (1 − h₄²))",
        "h̄₂ = W₂ᵀ(h̄₃ ⊙ (1 − h₃²))",
        "h̄₁ = W₁ᵀ(h̄₂ ⊙ (1 − h₂²))",
        "W̄₀ = (h̄₁ ⊙ (1 − h₁²))h₀ᵀ",
    ]


def test_a_short_chain_is_one_line() -> None:
    assert derive(*layers(2), "W0").lines()[2:] == ["W̄₀ = 2 ((W₁ᵀ(h₂ ⊙ (1 − h₂²))) ⊙ (1 − h₁²))h₀ᵀ"]
