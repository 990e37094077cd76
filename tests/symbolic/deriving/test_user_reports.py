"""What users ran into: one row a report, so that none of it comes back."""

import pytest

from gradproof.cli.main import run
from gradproof.numeric.compile import compile_numpy
from gradproof.numeric.crosschecks import crosscheck
from gradproof.symbolic.derive import derive
from gradproof.symbolic.deriving.products import hvp
from gradproof.symbolic.language.reader import build
from gradproof.symbolic.language.syntax import parse

# a sum over a part of an axis, or with the index as a number, is no sum over whole arrays
PRINTED = [
    ("sum[t=1:n](x[t])", {"x": "n"}, "L = Σ_{t=1}^{n−1} x_t", "x̄ = 1[i ≥ 1]"),
    ("sum[t=0:n-1](x[t]**2)", {"x": "n"}, "L = Σ_{t=0}^{n−2} x_t²", "x̄ = 2·1[i < n − 1] ⊙ x"),
    ("sum[t=0:n](x[t]**2)", {"x": "n"}, "L = ‖x‖²", "x̄ = 2 x"),
    ("sum[t=1:n,j](A[t,j]*b[j])", {"b": "m", "A": "n,m"}, "L = Σ_{t=1}^{n−1} A_tᵀb", "b̄ = Σ_{t=1}^{n−1} A_t"),
    ("sum[t=1:n](A[t,t])", {"A": "n,n"}, "L = Σ_{t=1}^{n−1} A_tt", "Ā = diag(1[i ≥ 1])"),
    ("sum[i](i**2*x[i])", {"x": "n"}, "L = Σ_i x_i i²", "x̄_i = i²"),
    ("sum[i,j](A[i,j]*(i-j))", {"A": "n,n"}, "L = Σ_ij A_ij(i − j)", "Ā_ij = i − j"),
]


@pytest.mark.parametrize(("expression", "shapes", "value", "gradient"), PRINTED)
def test_a_part_of_an_axis_is_printed_as_one(expression, shapes, value, gradient):
    found = derive(expression, shapes)
    assert found.value == value
    assert found.line(found.results[0]) == gradient


@pytest.mark.parametrize(("expression", "shapes", "value", "gradient"), PRINTED)
def test_its_code_agrees_with_autograd(expression, shapes, value, gradient):
    assert crosscheck(derive(expression, shapes), device="cpu").passed


SHIFTED = [
    "sum((v[2:] - 2*v[1:-1] + v[:-2])**2)",
    "sum[t=1:n](log(1 + (v[t] - v[t-1])**2))",
    "v @ v + sum(v[2:]*v[:-2])",
]


@pytest.mark.parametrize("expression", SHIFTED)
def test_a_hessian_times_a_vector_reads_no_entry_outside_its_axis(expression):
    program = parse(expression)
    found = hvp(build(program, {"v": "n"}), "v", "u", program)
    assert crosscheck(found, device="cpu").passed


def test_a_recurrence_that_runs_backwards_agrees_with_autograd():
    found = derive("h[T]=a; h[t]=tanh(w*h[t+1]+x[t]); sum(h)", {"a": "", "w": "", "x": "T"})
    assert crosscheck(found, device="cpu").passed


TAKEN = [  # names that a derivation would give to its own arrays, which step aside
    ("sum(x_bar) + sum(x)", {"x_bar": "n", "x": "n"}, {}, "x_bar"),
    ("sum(x_bar*x)", {"x_bar": "n", "x": "n"}, {}, "x_bar"),
    ("y = tanh(x); y_bar = 2*y; sum(y_bar)", {"x": "n"}, {}, "y_bar"),
    ("sum(x**2*L_bar)", {"x": "n", "L_bar": "n"}, {}, "L_bar"),
    ("sum(x_dot*x)", {"x_dot": "n", "x": "n"}, {"jvp": {"x": "v"}}, "x_dot"),
    ("sum(x_grad*x**3)", {"x_grad": "n", "x": "n"}, {"hvp": "v", "wrt": "x"}, "x_grad"),
    ("tanh(x)*J_x", {"x": "n", "J_x": "n"}, {"jacobian": True, "wrt": "x"}, "J_x"),
    ("sum(x**3*H_x)", {"x": "n", "H_x": "n"}, {"order": 2, "wrt": "x"}, "H_x"),
    ("sum(x**3*D_x)", {"x": "n", "D_x": "n"}, {"layout": "numerator", "wrt": "x"}, "D_x"),
]


@pytest.mark.parametrize(("expression", "shapes", "asked", "name"), TAKEN)
def test_a_users_name_stays_the_users(expression, shapes, asked, name):
    found = derive(expression, shapes, **asked)
    assert not found.system.arrays[name].role.marked and name in found.forward.arrays
    assert all(result.name != name for result in found.results)
    report = crosscheck(found, device="cpu")
    assert report.passed and any(row.error is not None for row in report.rows)


NO_VALUES = ("abs('x')", "concat('x', x)", "where(x > 0, None, x)", "exp((1, 2))", "einsum('i,i', x, 'x')")
REFUSED = [
    (["derive", "sum(x)", "x:n:index=V"], "there is nothing to differentiate by: x holds integers"),
    (["derive", "sum(x)", "x:n", "-o", "."], "is a folder"),
    (["count", "X @ W", "X:n,d", "W:d,k", "--at", "q=3"], "there is no size q; there are n, d, k"),
    (["derive", "sum(x, axis=3)", "x:n"], "the array has 1 axis"),
    (["derive", "sum[t=0:3](x[t])", "x:n"], "runs over 0 … 2, but the axis has size n"),
    *((["derive", f"sum({call})", "x:n"], "is not an array or a number") for call in NO_VALUES),
    (["derive", "sum(x) + sum(ones(-2))", "x:n"], "a size is not negative: -2"),
    (["derive", "sum(x) + trace(eye(-1))", "x:n"], "a size is not negative: -1"),
    (["derive", "sum(concat(X, X, axis=None))", "X:n,m"], "the axis is one whole number"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_it_is_refused_with_a_reason(arguments, message, capsys):
    assert run(arguments) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert not shown.out


@pytest.mark.parametrize("expression", ["det(A)", "logdet(A)/2 + x @ inv(A) @ x/2", "tr(inv(A))"])
def test_inverses_and_determinants_are_derived_by_the_command(expression, capsys):
    assert run(["derive", expression, "A:n,n:psd", "x:n"]) == 0
    assert "O(n³)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("expression", "shapes"),
    [("x[6]**2", {"x": "n"}), ("A[0,-1]*A[3,2]", {"A": "n,m"}), ("logdet(A @ A.T)", {"A": "m,n"})],
)
def test_sizes_are_drawn_at_which_there_is_a_value(expression, shapes):
    for seed in range(3):
        assert crosscheck(derive(expression, shapes), seed=seed, device="cpu").passed


UNDEFINED = [  # a name that only the value uses is defined where the value is printed
    (["log(det(A))", "A:n,n"], "d = det(A)"),
    (["norm(A @ x - b)**2", "A:m,n", "x:n", "b:m"], "r = ‖Ax − b‖"),
    (["log(det(A.T @ A))", "A:m,n"], "d = det(M)"),
]


@pytest.mark.parametrize(("arguments", "line"), UNDEFINED)
def test_no_printed_name_is_undefined(arguments, line, capsys):
    assert run(["derive", *arguments, "--no-steps"]) == 0
    assert line in capsys.readouterr().out


def test_a_size_is_read_off_an_array_called_len():
    source = compile_numpy(derive("sum(len*len)*n", {"len": "n"})).source
    assert "n = len(len_)" in source


def test_each_piece_has_its_own_comment():
    source = compile_numpy(derive("c[i] = a[i]; c[i+n] = b[i]; sum(c**2)", {"a": "n", "b": "m"})).source
    assert source.count("# c_i = b_{i−n},  i = n … m + n − 1") == 1


def test_a_table_that_is_piped_has_one_line_a_row(capsys):
    assert run(["list", "--topic", "rnn"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("rnn.") for line in lines) == len(lines) - 2


def test_sizes_are_printed_as_mathematics(capsys):
    assert run(["derive", "sum(x)", "x:n-1", "--no-steps"]) == 0
    assert "(n − 1)" in capsys.readouterr().out
