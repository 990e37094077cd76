"""Random expressions from the grammar, with random shapes: gradient, JVP and HVP against torch autograd.

None may be wrong, and none may be dropped: whatever the grammar builds must be derived.
"""

import re

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gradproof.numeric.compile import compile_numpy
from gradproof.numeric.reference.evaluator import evaluate
from gradproof.symbolic.derive import derive
from gradproof.symbolic.deriving.products import hvp, jvp
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.language.syntax import parse

SIZES = {"n": 2, "d": 3, "k": 4}
VARIABLES = {
    (): ["a", "b"],
    ("n",): ["x", "u"],
    ("d",): ["y"],
    ("k",): ["z"],
    ("n", "d"): ["A", "P"],
    ("d", "n"): ["B"],
    ("d", "k"): ["W"],
    ("n", "k"): ["C"],
    ("n", "n"): ["M"],
    ("k", "n", "d"): ["R"],
}
SHAPES = {name: ",".join(shape) for shape, names in VARIABLES.items() for name in names}
SMOOTH = """
tanh({})|sin({})|cos({})|sigmoid({})|({})**2|exp(-({})**2)|softplus({})|log(1 + ({})**2)|sqrt(1 + ({})**2)
|({}) / (1 + ({})**2)|erf({})|silu({})|2*({}) - 1|-({})|gelu({})
""".replace("\n", "").split("|")
ROWWISE = (
    "softmax({})",
    "log_softmax({})",
    "layernorm({}, eps=0.1)",
    "({}) / sqrt(1 + sum(({})**2, axis=-1, keepdims=True))",
)
KINKS = ("relu({})", "abs({})", "maximum({}, 0.3)", "where({} > 0.1, {}, ({})**2)")


@st.composite
def expression(draw, shape, depth):
    """A text whose value has the given shape (a tuple of size names)."""
    if depth == 0:
        return draw(
            st.sampled_from([*VARIABLES.get(shape, []), *(["1.5", "0.3"] if not shape else [])] or [filled(shape)])
        )
    inner = lambda s=shape, less=1: draw(expression(s, max(depth - less, 0)))  # noqa: E731
    kinds = ["sum", "product", "smooth", "smooth", "kink", "scaled"]
    kinds += {0: ["total", "dot", "mean", "logsumexp", "trace"], 1: ["rowwise", "reduced", "matvec", "vecmat"]}.get(
        len(shape), []
    )
    kinds += {2: ["rowwise", "matmul", "outer", "broadcast", "transpose"], 3: ["broadcast", "batched"]}.get(
        len(shape), []
    )
    kind = draw(st.sampled_from(kinds))
    if kind == "sum":
        return f"({inner()} {draw(st.sampled_from('+-'))} {inner()})"
    if kind == "product":
        return f"({inner()} * {inner()})"
    if kind in ("smooth", "rowwise", "kink"):
        table = {"smooth": SMOOTH, "rowwise": ROWWISE, "kink": KINKS}[kind]
        template, argument = draw(st.sampled_from(table)), inner()
        return "(" + template.replace("{}", argument) + ")"
    if kind == "scaled":
        return f"(({inner(())}) * ({inner()}))"
    size = st.sampled_from(["n", "d", "k"])
    other = draw(size)
    if kind in ("total", "mean"):
        what = draw(st.sampled_from([("n",), ("n", "d"), ("d", "k"), ("n", "k")]))
        return f"{'sum' if kind == 'total' else 'mean'}({inner(what)})"
    if kind == "logsumexp":
        return f"logsumexp({inner((other,))})"
    if kind == "dot":
        return f"(({inner((other,))}) @ ({inner((other,))}))"
    if kind == "trace":
        return f"trace({inner(('n', 'n'))})"
    if kind == "reduced":
        return (
            f"sum({inner((other, *shape))}, axis=0)"
            if draw(st.booleans())
            else f"mean({inner((*shape, other))}, axis=1)"
        )
    if kind == "matvec":
        return f"(({inner((*shape, other))}) @ ({inner((other,))}))"
    if kind == "vecmat":
        return f"(({inner((other,))}) @ ({inner((other, *shape))}))"
    if kind == "matmul":
        return f"(({inner((shape[0], other))}) @ ({inner((other, shape[1]))}))"
    if kind == "outer":
        return f"outer({inner(shape[:1])}, {inner(shape[1:])})"
    if kind == "broadcast":
        return f"(({inner()}) * ({inner(shape[1:])}))"
    if kind == "batched":
        return f"(({inner((shape[0], shape[1], other))}) @ ({inner((other, shape[2]))}))"
    return f"({inner(shape[::-1])}).T"


def filled(shape):
    return f"0.5*ones({', '.join(shape)})" if shape else "1.5"


@st.composite
def program(draw):
    text = draw(expression((), draw(st.integers(2, 4))))
    used = [name for name in SHAPES if any(token == name for token in tokens(text))]
    return text, used


def tokens(text):
    return re.findall(r"[A-Za-z_]\w*", text)


def check(text, used, seed):
    """Compare gradient, JVP and HVP; returns nothing, fails with the text."""
    rng = np.random.default_rng(seed)
    shape_of = {name: tuple(SIZES[s] for s in SHAPES[name].split(",") if s) for name in SHAPES}
    arrays = {name: rng.normal(size=shape_of[name]) for name in SHAPES}
    tree = parse(text)
    tensors = {name: torch.tensor(value, requires_grad=True) for name, value in arrays.items()}
    variables = [tensors[name] for name in used]
    value = evaluate(tree, tensors, SIZES)
    expected = torch.autograd.grad(value, variables, create_graph=True, allow_unused=True)
    expected = [torch.zeros_like(t) if g is None else g for t, g in zip(variables, expected, strict=True)]
    found = derive(text, SHAPES, used)
    mine, gradients = run(compile_numpy(found), arrays)
    near(mine, value, text)
    for name, gradient in zip(used, expected, strict=True):
        near(gradients[name], gradient, f"{name}: {text}")
    directions = {name: rng.normal(size=shape_of[name]) for name in used}
    change = sum((g * torch.tensor(directions[name])).sum() for name, g in zip(used, expected, strict=True))
    system = build(tree, SHAPES)
    along = jvp(system, {name: f"d_{name}" for name in used}, tree)
    result = along.gradients[along.output].equation.name
    near(
        run(compile_numpy(along.system, [result]), {**arrays, **{f"d_{n}": v for n, v in directions.items()}})[result],
        change,
        text,
    )
    name = used[0]
    inner = (expected[0] * torch.tensor(directions[name])).sum()
    second = torch.autograd.grad(inner, tensors[name], allow_unused=True)[0] if inner.requires_grad else None
    product = hvp(system, name, f"v_{name}", tree)
    (result,) = (gradient.equation.name for gradient in product.gradients.values())
    values = run(compile_numpy(product.system, [result]), {**arrays, f"v_{name}": directions[name]})
    near(values[result], torch.zeros_like(tensors[name]) if second is None else second, f"HVP by {name}: {text}")


def run(function, arrays):
    return function(
        **{name: value for name, value in arrays.items() if name in function.arguments.names}, **sizes_for(function)
    )


def sizes_for(function):
    return {name: SIZES[name] for name in function.arguments.names if name in SIZES}


def near(mine, theirs, what):
    theirs = (theirs.detach() + 0).numpy()  # torch may give a zero tensor without storage
    assert np.shape(mine) == theirs.shape, what
    assert np.max(np.abs(mine - theirs), initial=0) <= 1e-9 * max(1.0, np.max(np.abs(theirs), initial=0)), what


def scaled(examples):
    """The same examples every time; without shrinking, so that a failure is told at once."""
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )


@scaled(60)
@given(program())
def test_random_expressions(case):
    text, used = case
    if used:
        check(text, used, seed=len(text))


@pytest.mark.slow
@scaled(2000)
@given(program())
def test_two_thousand_random_expressions(case):
    text, used = case
    if used:
        check(text, used, seed=len(text))
