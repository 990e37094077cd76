"""Cross-checks pass for what is right, and catch every term dropped, sign flipped or factor changed."""

from dataclasses import replace

import numpy as np
import pytest
from sympy import Add, Mul, S

from gradproof.numeric import crosscheck
from gradproof.numeric.random_inputs import random_inputs, random_sizes
from gradproof.numeric.samples import relative_error
from gradproof.symbolic.derive import derive
from gradproof.symbolic.deriving.products import hessian, hvp, jacobian, jvp
from gradproof.symbolic.errors import GradproofError
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.language.syntax import parse

RIGHT = [
    ("sum((X @ W - Y)**2)", {"X": "n,d", "W": "d,k", "Y": "n,k"}, None),
    ("softmax(Q @ K.T / sqrt(d)) @ V", {"Q": "n,d", "K": "m,d", "V": "m,k"}, "G"),
    ("layernorm(Z, eps=1e-5) * g + b", {"Z": "n,d", "g": "d", "b": "d"}, "G"),
    ("relu(X @ W)", {"X": "n,d", "W": "d,k"}, "G"),
    ("E[w]", {"E": "V,d", "w": "T:index=V"}, "G"),
    ("sum(log(x))", {"x": "n"}, None),  # only positive inputs have a value
    ("x @ inv(S) @ x", {"x": "n", "S": "n,n:psd"}, None),
    ("h[0] = a; h[t+1] = tanh(w * h[t] + x[t]); sum(h * G)", {"a": "", "w": "", "x": "T", "G": "T+1"}, None),
]


@pytest.mark.parametrize(("text", "shapes", "cotangent"), RIGHT, ids=[row[0] for row in RIGHT])
def test_right_gradients_pass(text, shapes, cotangent):
    pytest.importorskip("torch")
    report = crosscheck(derive(text, shapes, cotangent=cotangent), device="cpu")
    assert report.passed, report
    assert {row.against for row in report.rows} == {"torch", "differences", "mpmath"}
    assert all(row.status == "passed" for row in report.rows), report


def corrupted(body):
    """The right side of an equation with one thing wrong."""
    found = [-body, 2 * body]
    if isinstance(body, Add):
        found += [body - 2 * body.args[0], *(body - term for term in body.args)]
    for factor in Mul.make_args(body):
        if isinstance(factor, Add):
            found += [body / factor * (factor - term) for term in factor.args]
    return [wrong for wrong in found if wrong not in (body, S.Zero)]


@pytest.mark.parametrize(("text", "shapes", "cotangent"), RIGHT[:4], ids=[row[0] for row in RIGHT[:4]])
def test_wrong_gradients_are_caught(text, shapes, cotangent):
    found = derive(text, shapes, cotangent=cotangent)
    for gradient in found.gradients.values():
        for wrong in corrupted(gradient.equation.body):
            equations = [e.with_body(wrong) if e.name == gradient.equation.name else e for e in found.system.equations]
            bad = replace(found, system=found.system.with_equations(equations))
            report = crosscheck(bad, against=("differences",))
            assert not report.passed, (gradient.name, wrong)


def products():
    program = parse("softmax(A @ z)")
    vector = build(program, {"z": "k", "A": "n,k"})
    loss = parse("sum(exp(A @ z))")
    scalar = build(loss, {"z": "k", "A": "n,k"})
    return [
        jacobian(vector, "z", program),
        jacobian(vector, "z", program, "denominator"),
        jvp(vector, {"z": "v"}, program),
        hessian(scalar, "z,A", loss),
        hvp(scalar, "z", "v", loss),
    ]


@pytest.mark.parametrize("number", range(5), ids=["jacobian", "transposed", "jvp", "hessian", "hvp"])
def test_second_order_and_products(number):
    pytest.importorskip("torch")
    report = crosscheck(products()[number], device="cpu")
    assert report.passed, report
    assert all(row.passed for row in report.rows if row.against != "differences"), report


SQUARE = {"A": "n,n", "x": "n"}  # shapes under which a layout cannot be seen
ASKED = [
    ("A @ x", SQUARE, {"jacobian": True, "wrt": "x"}),
    ("A @ x", SQUARE, {"jacobian": True, "wrt": "x", "layout": "denominator"}),
    ("sum((A @ x)**2)", SQUARE, {"wrt": "A", "layout": "numerator"}),
    ("sum((A @ B)**2)", {"A": "n,m", "B": "m,n"}, {"wrt": "A", "layout": "numerator"}),
    ("sum(x**2 * y)", {"x": "n", "y": "n"}, {"jvp": {"x": "v", "y": "v"}}),
    ("sum(x**2 * y)", {"x": "n", "y": "n"}, {"jvp": {"y": "v", "x": "w"}}),
]


@pytest.mark.parametrize(("text", "shapes", "asked"), ASKED)
def test_what_was_asked_for_is_compared(text, shapes, asked):
    """A result is compared as what it is, not as what its shape looks like."""
    pytest.importorskip("torch")
    report = crosscheck(derive(text, shapes, **asked), device="cpu")
    assert all(row.status == "passed" for row in report.rows), report


def test_one_direction_fits_all_its_variables():
    with pytest.raises(GradproofError, match="v cannot be the change of x and of y: their shapes differ"):
        derive("sum(x) * sum(y)", {"x": "n", "y": "m"}, jvp={"x": "v", "y": "v"})


def test_an_entry_beside_a_kink_is_left_out():
    found = derive("sum(abs(x - y))", {"x": "n", "y": "n"}, "x")
    report = crosscheck(found, against=("differences",))
    assert report.passed


def test_an_oracle_can_stand_for_the_expression():
    torch = pytest.importorskip("torch")
    found = derive("softmax(S)", {"S": "n,m"}, cotangent="G")
    assert crosscheck(found, ("torch",), oracle=lambda tensors, sizes: torch.softmax(tensors["S"], -1)).passed
    assert not crosscheck(found, ("torch",), oracle=lambda tensors, sizes: torch.softmax(tensors["S"], 0)).passed


def test_the_report_prints_as_a_table():
    text = str(crosscheck(derive("sum(x**3)", {"x": "n"}), against=("mpmath",)))
    assert text.splitlines()[0].split() == ["result", "against", "error", "allowed"]
    assert text.splitlines()[1].split()[-1] == "passed"


def test_unknown_comparison():
    with pytest.raises(GradproofError, match="compare against"):
        crosscheck(derive("sum(x)", {"x": "n"}), against=("jax",))


def test_errors_are_relative_to_the_largest_entry():
    assert relative_error(np.array([1.0, 9.0]), np.array([1.0, 10.0])) == pytest.approx(0.1)
    assert relative_error(np.ones(2), np.ones((2, 1))) == float("inf")
    assert relative_error(np.array([float("nan")]), np.ones(1)) == float("inf")


def test_random_inputs_have_their_declared_properties():
    system = build(
        parse("sum(S @ P) + sum(D) + sum(O) + sum(p) + sum(x[w])"),
        {"S": "n,n:symmetric", "P": "n,n:psd", "D": "n,n:diagonal", "O": "n,n:orthogonal", "p": "m,n:simplex"}
        | {"x": "k", "w": "T:index=k"},
    )
    sizes = random_sizes(system, 3)
    assert len(set(sizes.values())) == len(sizes)
    found = random_inputs(system, sizes, 3)
    assert np.allclose(found["S"], found["S"].T)
    assert np.linalg.eigvalsh(found["P"]).min() > 0
    assert np.count_nonzero(found["D"] - np.diag(np.diag(found["D"]))) == 0
    assert np.allclose(found["O"] @ found["O"].T, np.eye(len(found["O"])))
    assert np.allclose(found["p"].sum(axis=1), 1) and (found["p"] > 0).all()
    assert found["w"].dtype.kind == "i" and found["w"].max() < len(found["x"])
