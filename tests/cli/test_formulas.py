"""The command line with formulas of one's own: MATLAB's spelling, symmetric variables, checks, Hessians measured."""

import json
from pathlib import Path

import pytest

from gradproof.cli.main import run


def output(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert run(list(arguments)) == code
    return capsys.readouterr().out


def test_matlab_spelling(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "derive", "x'*A*x + norm2(x)^2", "x:n", "A:n,n", "--wrt", "x", "--syntax", "matlab")
    assert "x̄ = 2 x + Ax + Aᵀx" in text
    plain = output(capsys, "derive", "x @ A @ x + norm(x)**2", "x:n", "A:n,n", "--wrt", "x", "--format", "json")
    matlab = output(
        capsys, "derive", "x'*A*x + norm2(x)^2", "x:n", "A:n,n", "--wrt", "x", "--syntax", "matlab", "--format", "json"
    )
    assert json.loads(plain)["gradients"] == json.loads(matlab)["gradients"]


def test_matlab_claim(capsys: pytest.CaptureFixture[str]) -> None:
    given = ("check", "x'*A*x", "x:n", "A:n,n", "--wrt", "x", "--syntax", "matlab", "--claim")
    assert output(capsys, *given, "A*x + A'*x").startswith("proved")
    wrong = output(capsys, *given, "2*A*x", code=1)
    assert wrong.startswith("refuted") and "right if A is symmetric" in wrong and "(A + Aᵀ)x" in wrong


@pytest.mark.parametrize("format_", ["text", "markdown", "latex", "json"])
def test_convention_of_a_symmetric_variable(capsys: pytest.CaptureFixture[str], format_: str) -> None:
    given = ("derive", "x @ inv(S) @ x", "x:n", "S:n,n:symmetric", "--wrt", "S", "--format", format_)
    assert "S is symmetric; the derivative is that of the formula with all entries of S free" in output(capsys, *given)


PROOFS = [
    ("lm.factorisation", "split sum", "∏_{t=0}^{T−1} a_t = (1/a_T) a_0 ∏_t a_{t+1}"),
    ("adam.bias_correction", "closed form", "m_s = b^s Σ_{i=0}^{s−1} b^(−1−i) (g_i − b g_i)"),
    ("adam.bias_correction", "geometric sum", "E[L] = μ (1 − b^t)"),
    ("sequence.count", "normal form", "V^T"),
    ("attention.readout", "normal form", "Σ_{i=0}^{d−1} (W_c)_ki a_i + Σ_i (W_c)_{k,d+i} s_i"),
    ("rope.rotation", "last digit", ""),
]


@pytest.mark.parametrize(("identifier", "rule", "equation"), PROOFS)
def test_derive_shows_the_proofs_of_what_is_stated(
    capsys: pytest.CaptureFixture[str], identifier: str, rule: str, equation: str
) -> None:
    text = output(capsys, "derive", identifier)
    found = json.loads(output(capsys, "derive", identifier, "--format", "json"))
    steps = [step for row in found["identities"] + found["moments"] for step in row["steps"]]
    assert equation in [step["equation"] for step in steps if step["rule"] == rule]
    assert f"     {rule}: " in text and (not equation or f"       {equation}\n" in f"{text}\n")
    assert not equation or equation not in output(capsys, "derive", identifier, "--no-steps")


@pytest.mark.parametrize("options", [("--format", "latex"), ("--jacobian",), ("--wrt", "x")])
def test_what_is_no_function_has_no_derivative(capsys: pytest.CaptureFixture[str], options: tuple[str, ...]) -> None:
    assert run(["derive", "sequence.count", *options]) == 2
    assert "states no function to differentiate" in capsys.readouterr().err


BACKWARD = """
import torch

class Squares(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x**2).sum()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return FACTOR*g*x
"""


@pytest.mark.parametrize(("factor", "code"), [("2", 0), ("3", 1)])
def test_check_file(capsys: pytest.CaptureFixture[str], tmp_path: Path, factor: str, code: int) -> None:
    path = tmp_path / "my.py"
    path.write_text(BACKWARD.replace("FACTOR", factor))
    text = output(capsys, "check", "sum(x**2)", "x:n", "--file", str(path), code=code)
    assert text.startswith("refuted" if code else "agrees") and ("x" in text)


def test_bench_hessian(capsys: pytest.CaptureFixture[str]) -> None:
    """All three cases, of one small size: the Hessians are compared before anything is timed."""
    rows = json.loads(output(capsys, "bench", "hessian", "--size", "20", "--rounds", "1", "--json"))
    assert [row["name"] for row in rows] == ["logistic regression", "matrix factorisation", "two-layer net"]
    assert all(row["times_torch"] > 0 and row["gradproof_seconds"] > 0 for row in rows)
