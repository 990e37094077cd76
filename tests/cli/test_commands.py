"""The command line: exit codes, messages and documents. One row, one fact."""

import json
import subprocess
import sys

import pytest

from gradproof.cli.main import run
from gradproof.symbolic.folding.checks import StepError

LEAST_SQUARES = ["sum((X @ W - Y)**2)", "X:n,d", "W:d,k", "Y:n,k"]
SOFTMAX = ["sum(softmax(S, axis=1) * G)", "S:n,m", "G:n,m", "--wrt", "S", "--claim"]
RIGHT_ABOVE_0 = ["sum(x**2)/2", "x:n", "--wrt", "x", "--claim", "exp(log(x))"]

GOOD = [
    # arguments, exit code, fragment of standard output
    (["list", "--topic", "softmax"], 0, "softmax.jacobian"),
    (["--lang", "zh", "list", "--topic", "softmax"], 0, "Softmax 的导数"),
    (["show", "layernorm.backward"], 0, "C15.5"),
    (["derive", *LEAST_SQUARES, "--wrt", "W"], 0, "W̄ = 2 Xᵀ(XW − Y)"),
    (["derive", *LEAST_SQUARES, "--wrt", "W", "--format", "latex"], 0, r"\bar{W} &= 2 X^{\top} (X W - Y)"),
    (["derive", *LEAST_SQUARES, "--wrt", "W", "--format", "markdown"], 0, "$$"),
    (["derive", *LEAST_SQUARES, "--wrt", "W", "--format", "numpy"], 0, "def "),
    (["derive", *LEAST_SQUARES, "--wrt", "W", "--format", "jax"], 0, "import jax\n"),
    (["derive", *LEAST_SQUARES, "--wrt", "W", "--example"], 0, "example:"),
    (["derive", *LEAST_SQUARES, "--wrt", "W,X", "--no-steps"], 0, "X̄ = 2 (XW − Y)Wᵀ"),
    (["derive", "softmax(z)", "z:n", "--jacobian", "--form", "index"], 0, "P_i(δ_ij − P_j)"),
    (["derive", "softmax(z)", "z:n", "--cotangent", "G"], 0, "z̄ = P ⊙ (G − GᵀP)"),
    (["derive", "x @ A @ x", "x:n", "A:n,n", "--wrt", "x", "--order", "2"], 0, "A + Aᵀ"),
    (["derive", "x @ A @ x", "x:n", "A:n,n", "--wrt", "x", "--hvp", "v"], 0, "v"),
    (["derive", *LEAST_SQUARES, "--wrt", "W", "--layout", "numerator"], 0, "2 (XW − Y)ᵀX"),
    (["derive", "rnn.step_jacobian"], 0, "in denominator layout: J_{h,0} = W_hᵀ diag(σ′(z))"),
    (["derive", "layernorm.backward"], 0, "x̄ = (1/s)[u − mean(u) − x̂ mean(u ⊙ x̂)]"),
    (["derive", "attention.block_backward", "--no-steps"], 0, "S̄ = A ⊙ (Ā − rowsum(A ⊙ Ā))"),
    (["check", *SOFTMAX, "softmax(S, axis=1) * (G - sum(softmax(S, axis=1) * G, axis=1, keepdims=True))"], 0, "proved"),
    (["check", *SOFTMAX, "softmax(S, axis=1) * G"], 1, "S̄ = P ⊙ (G − rowsum(G ⊙ P))"),
    (["check", *RIGHT_ABOVE_0], 0, "proved where x > 0"),
    (["check", *RIGHT_ABOVE_0, "--strict"], 1, "proved where x > 0"),
    (["check", "max(x)", "x:n", "--wrt", "x", "--claim", "x == max(x)", "--strict"], 1, "at the kink x = 0"),
    (["check", "sum(x)", "x:n", "--wrt", "x", "--claim", "ones(n)", "--strict"], 0, "proved"),
    (["code", *LEAST_SQUARES, "--wrt", "W"], 0, "def value_and_gradients"),
    (["code", *LEAST_SQUARES, "--wrt", "W", "--backend", "jax"], 0, "@jax.jit"),
    (["count", "mha", "--at", "d_model=512,h=8"], 0, "parameters (W_Q, W_K, W_V, W_O): 1048576"),
    (["count", "ffn"], 0, "8·d² + 5·d"),
    (["count", "mha", "--at", "d_model=512,h=8"], 0, "order: O(n²)"),
    (["--lang", "zh", "count", "mha"], 0, "量级：O(d²·n"),
    (["--lang", "zh", "variance", "sum[l](q[l]*k[l])", "q:d:iid=0,1", "k:d:iid=0,1"], 0, "检验：按定义"),
    (["variance", "sum[l](q[l]*k[l])", "q:d:iid=0,1", "k:d:iid=0,1"], 0, "Var(kᵀq) = d"),
    (["audit", "--topic", "ntk"], 0, r"right is: f_t(x) = f_0(x) + \Theta(x, X)\,\Theta(X, X)^{-1} \bigl(I - e"),
    (["audit", "--topic", "ntk", "--format", "latex"], 0, r"e^{-\eta \Theta t}"),
    (["--lang", "zh", "audit", "--topic", "ntk", "--format", "markdown"], 0, "已更正"),
    (["--lang", "zh", "show", "ntk.dynamics"], 0, "正确形式"),
    (["show", "variance.scaled_dot_product"], 0, "variance of sum[l](q[l]*k[l])/sqrt(d_k)  =  1"),
    (["show", "attention.bilinear"], 0, "refuted: symmetric in general"),
    (["show", "block.pre_vs_post"], 0, "gradproof experiment block_depth"),
    (["audit", "attention.bilinear"], 0, "refuted: for d = 2, d_k = 1; W_Q = [[1], [1]], W_K = [[0], [1]]"),
    (["--lang", "zh", "audit", "attention.bilinear"], 0, "被否定：取 d = 2, d_k = 1"),
]


@pytest.mark.parametrize(("arguments", "code", "fragment"), GOOD)
def test_a_command_prints_its_result(arguments, code, fragment, capsys):
    assert run(arguments) == code
    assert fragment in capsys.readouterr().out


BAD = [
    # arguments, fragment of the message; always exit 2, never a traceback
    (["derive", "sum((X @ W - Y)**2)", "X:n,d", "W:d,k", "Y:k,n"], "do not fit"),
    (["derive", "sum(Q)", "X:n"], "Q is not declared"),
    (["derive", "sum(foo(X))", "X:n"], "there is no function foo"),
    (["derive", "sum(X)", "X:n", "--wrt", "Z"], "there is no variable Z"),
    (["derive", "softmax(z)", "z:n"], "--cotangent"),
    (["derive", "__import__('os')", "X:n"], "does not start with _"),
    (["derive", "lambda: 1", "X:n"], "lambda"),
    (["derive", "(" * 100_000 + "x" + ")" * 100_000, "x:n"], "characters"),
    (["derive", "(" * 500 + "x" + ")" * 500, "x:n"], "brackets in each other"),
    (["derive", "-" * 500 + "x", "x:n"], "sign"),
    (["derive", "-" * 100_000 + "x", "x:n"], "characters"),
    (["derive", "sum(X", "X:n"], "bracket"),
    (["derive", "", "X:n"], "empty"),
    (["derive", "sum(X)", "X:n,"], "size"),
    (["derive", "sum(X)", "X:n:round"], "round is not known"),
    (["derive", "attention.block_backwards"], "did you mean attention.block_backward"),
    (["derive", "attention.block_backward", "X:n"], "takes no NAME:SIZES"),
    (["derive", "sum[t](v[t]*v[t+1])", "v:n"], "leaves its axis"),
    (["derive", "sum(x**2)", "x:n", "--order", "2", "--jacobian"], "choose one"),
    (["derive", "1/0", "x:n"], "division by zero"),
    (["derive", "9**9**9**9", "x:n"], "too large"),
    (["derive", "sum(log(-1)*x)", "x:n"], "not a real number"),
    (["check", "sum(x**2)", "x:n", "--wrt", "x"], "--claim"),
    (["check", "sum(x**2)", "x:n", "--wrt", "x", "--claim", "2*q"], "q is not declared"),
    (["code", "transformer", "--backend", "jax"], "written for numpy or torch"),
    (["frobnicate"], "there is no command frobnicate"),
    (["show", "nothing.here"], "there is no entry"),
    (["audit", "nothing.here"], "there is no entry"),
    (["audit", "softmax.shift", "--topic", "softmax"], "or a --topic"),
    (["count", "mha", "--at", "d_model=512,h=7"], "d_k is 512/7"),
    (["count", "ffn", "--at", "d=0"], "whole number above 0"),
    (["variance", "sum(x)", "x:n:uniform=3,1"], "the lower one stands first"),
    (["experiment", "dimension", "-o", "no/such/folder/x.png"], "does not exist"),
    (["list", "--topic", "nothing"], "there is no topic"),
    (["derive", *LEAST_SQUARES, "-o", "no/such/folder/x.txt"], "does not exist"),
]


@pytest.mark.parametrize(("arguments", "fragment"), BAD)
def test_bad_input_is_answered_with_a_message(arguments, fragment, capsys):
    assert run(arguments) == 2
    shown = capsys.readouterr()
    assert fragment in shown.err
    assert "Traceback" not in shown.err


def test_derive_json_has_the_documented_keys(capsys):
    assert run(["derive", *LEAST_SQUARES, "--wrt", "W", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {"expression", "shapes", "layout", "value", "gradients", "steps"} <= set(document)
    assert set(document["gradients"]["W"]) == {"text", "latex", "index", "numpy", "shape"}
    assert document["gradients"]["W"]["shape"] == ["d", "k"]
    assert all(set(step) == {"rule", "reason", "before", "after", "checked"} for step in document["steps"])


def test_check_json_has_the_documented_keys(capsys):
    assert run(["check", *SOFTMAX, "G", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert {"verdict", "how", "counterexample", "correct"} <= set(document)
    assert document["verdict"] == "refuted"


def test_list_json_has_the_documented_keys(capsys):
    assert run(["list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert all({"id", "title", "kind", "verdict", "source"} == set(row) for row in rows)


def test_output_goes_to_a_file_whole(tmp_path, capsys):
    target = tmp_path / "w.tex"
    assert run(["derive", *LEAST_SQUARES, "--wrt", "W", "--format", "latex", "-o", str(target)]) == 0
    assert r"\bar{W}" in target.read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["w.tex"]


def test_the_help_imports_neither_sympy_nor_numpy():
    probe = "import sys; from gradproof.cli.main import run; run(['--help'])\n"
    probe += "print(sorted({'sympy', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("[]")


def test_generated_code_runs_on_its_own(tmp_path, capsys):
    target = tmp_path / "gradient.py"
    assert run(["code", *LEAST_SQUARES, "--wrt", "W", "-o", str(target)]) == 0
    probe = f"""
import runpy, numpy as np
f = runpy.run_path({str(target)!r})["value_and_gradients"]
rng = np.random.default_rng(0)
X, W, Y = rng.normal(size=(4, 3)), rng.normal(size=(3, 2)), rng.normal(size=(4, 2))
value, gradients = f(X, W, Y)
assert np.allclose(gradients["W"], 2 * X.T @ (X @ W - Y), atol=1e-12)
import sys; assert not any(name.startswith("gradproof") for name in sys.modules)
"""
    subprocess.run([sys.executable, "-c", probe], check=True, capture_output=True)


@pytest.mark.parametrize("fault", [ZeroDivisionError("boom"), AttributeError("boom"), StepError("boom")])
def test_a_fault_of_ours_has_an_exit_code_of_its_own(fault, capsys, monkeypatch):
    def failing(*_, **__):
        raise fault

    monkeypatch.setattr("gradproof.cli.commands.check.formula", failing)
    assert run(["check", *SOFTMAX, "G"]) == 70
    shown = capsys.readouterr().err
    assert "boom" in shown and "Please report it" in shown and "Traceback" not in shown
    assert run(["check", *SOFTMAX, "G", "--traceback"]) == 70
    assert "Traceback" in capsys.readouterr().err
