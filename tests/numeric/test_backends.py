"""Every back end computes what the NumPy code computes, and can be printed where its library is missing."""

from __future__ import annotations

import ast
import builtins
import importlib.util
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from gradproof.numeric.backends import BACKENDS, VARIANTS, emitter
from gradproof.numeric.compile import compile_for, compile_jax, source_for
from gradproof.numeric.lowering.nodes import RESERVED
from gradproof.numeric.samples import Sample, relative_error
from gradproof.symbolic.derive import derive
from gradproof.symbolic.errors import GradproofError
from gradproof.symbolic.language.reader import build

# expression, shapes, by which variables, and what else `derive` is asked for
FORMS: dict[str, tuple[str, dict[str, str], str, dict[str, Any]]] = {
    "least squares": ("sum((X @ W - Y)**2)", {"X": "n,d", "W": "d,k", "Y": "n,k"}, "X,W", {}),
    "three factors": ("sum[i,j,k](A[i,j]*B[j,k]*C[k,i])", {"A": "n,m", "B": "m,p", "C": "p,n"}, "A,B,C", {}),
    "batched product": ("y[b,i] = sum[j](A[b,i,j]*x[b,j]); sum(y**2)", {"A": "b,n,m", "x": "b,m"}, "A,x", {}),
    "softmax": ("softmax(z)", {"z": "n"}, "z", {"cotangent": "G"}),
    "jacobian of softmax": ("softmax(z)", {"z": "n"}, "z", {"jacobian": True}),
    "hessian of logsumexp": ("logsumexp(z)", {"z": "n"}, "z", {"order": 2}),
    "hessian of a norm": ("norm(x)", {"x": "n"}, "x", {"order": 2}),
    "hessian with blocks": ("sum((X @ W)**3)", {"X": "n,d", "W": "d,k"}, "W", {"order": 2}),
    "cross-entropy": ("-log_softmax(z)[y]", {"z": "n", "y": ":index=n"}, "z", {}),
    "lookup": ("sum[t,k](E[w[t],k]**2)", {"E": "V,d", "w": "T:index=V"}, "E", {}),
    "lookup of two": ("sum[t](A[u[t],w[t]]**2)", {"A": "n,m", "u": "T:index=n", "w": "T:index=m"}, "A", {}),
    "where": ("sum(where(x > 0, log(1 + x**2), x))", {"x": "n"}, "x", {}),
    "mask": ("softmax(where(M == 1, S, -inf))", {"S": "n,m", "M": "n,m:index=2"}, "S", {"cotangent": "G"}),
    "recurrence": (
        "h[0,k] = s[k]; h[t+1,k] = tanh(sum[j](U[k,j]*h[t,j]) + x[t,k]); sum(h**2)",
        {"s": "d", "U": "d,d", "x": "T,d"},
        "s,U,x",
        {},
    ),
    "convolution": ("y[p] = sum[k](x[p+k]*w[k]); sum(y**2)", {"x": "n+m-1", "w": "m"}, "x,w", {}),
    "stride": ("y[p] = sum[k](x[2*p+k]*w[k]); sum(y**2)", {"x": "2*n+m-2", "w": "m"}, "x,w", {}),
    "shift": ("sum[i=0:n-1]((x[i+1] - x[i])**2)", {"x": "n"}, "x", {}),
    "diagonal": ("trace(A @ A) + sum(diag(A)**3)", {"A": "n,n"}, "A", {}),
    "logdet": ("logdet(S)", {"S": "n,n:psd"}, "S", {}),
    "solve": ("x @ inv(S) @ x", {"S": "n,n:psd", "x": "n"}, "S,x", {}),
    "maximum": ("max(A, axis=1)", {"A": "n,m"}, "A", {"cotangent": "G"}),
    "product": ("prod(x)", {"x": "n"}, "x", {}),
    "layernorm": ("layernorm(X)", {"X": "n,d"}, "X", {"cotangent": "G"}),
    "functions": ("sum(gelu(x) + silu(x) + softplus(x) + sigmoid(x) + erf(x) + abs(x))", {"x": "n"}, "x", {}),
    "scalars": ("lam*sum(x**2)/2 + lam**2", {"lam": "", "x": "n"}, "lam,x", {}),
    "a size": ("sum(x**2)/n + sqrt(n)", {"x": "n"}, "x", {}),
    "hessian times a vector": ("sum(tanh(W @ x)**2)", {"W": "m,d", "x": "d"}, "W", {"hvp": "V"}),
}
LIBRARIES = {"torch": "verify", "jax": "jax"}  # the extra that brings each


@pytest.mark.parametrize("backend", [name for name in BACKENDS if name != "numpy"])
@pytest.mark.parametrize("form", FORMS)
def test_a_back_end_equals_numpy(form: str, backend: str) -> None:
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f'{backend} is not installed: pip install "gradproof[{LIBRARIES[backend]}]"')
    text, shapes, wrt, options = FORMS[form]
    found = Sample.draw(derive(text, shapes, wrt.split(","), **options), 0)
    code = compile_for(emitter(backend), found.derivation, device="cpu")
    extra = {size.name: found.sizes[size] for size in code.arguments.given}
    value, gradients = code(**found.inputs, **extra)
    assert relative_error(np.asarray(value), found.value) <= 1e-12
    for name, expected in found.gradients.items():
        assert relative_error(np.asarray(gradients[name]), expected) <= 1e-12, name


def test_jax_takes_its_own_arrays_and_keeps_their_precision() -> None:
    jax = pytest.importorskip("jax", reason='jax is not installed: pip install "gradproof[jax]"')
    code = compile_jax(derive("sum(x**2)", {"x": "n"}, "x"))
    value, gradients = code(x=jax.numpy.arange(3, dtype="float32"))
    assert (value.dtype, gradients["x"].dtype, gradients["x"].tolist()) == ("float32", "float32", [0.0, 2.0, 4.0])
    assert code(x=np.arange(3.0))[0].dtype == "float64"


def test_a_size_that_no_array_shows_is_static_under_jit() -> None:
    pytest.importorskip("jax", reason='jax is not installed: pip install "gradproof[jax]"')
    code = compile_jax(build("y = x / n", {"x": "n+m"}))
    assert '@partial(jax.jit, static_argnames=("n",))' in code.source
    assert code(x=[2.0, 4.0], n=2)["y"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("backend", LIBRARIES)
def test_a_missing_library_is_named(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "gradproof.numeric.emitters.torch_arguments", raising=False)
    monkeypatch.setitem(sys.modules, backend, None)
    with pytest.raises(GradproofError, match=f"{backend} is not installed"):
        compile_for(emitter(backend), derive("sum(x**2)", {"x": "n"}, "x"))


def test_a_recurrence_is_a_loop_of_jax_unless_a_slice_depends_on_the_step() -> None:
    text, shapes, wrt, _ = FORMS["recurrence"]
    assert source_for("jax", derive(text, shapes, wrt.split(","))).count("jax.lax.fori_loop(") == 2
    text, shapes, wrt, _ = FORMS["stride"]
    assert "for k in range(" in source_for("jax", derive(text, shapes, wrt.split(",")))


@pytest.mark.parametrize("backend", BACKENDS)
def test_code_is_printed_without_its_library(backend: str) -> None:
    """No module of the library is loaded, and the source is Python that imports it."""
    program = (
        "import sys; sys.modules.update({'torch': None, 'jax': None, 'jax.numpy': None})\n"
        "from gradproof.numeric.compile import source_for; from gradproof.symbolic import derive\n"
        f"print(source_for({backend!r}, derive('sum(exp(x))', {{'x': 'n'}}, 'x')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert f"import {backend}" in done.stdout
    ast.parse(done.stdout)


@pytest.mark.parametrize("backend", [*BACKENDS, *VARIANTS])
def test_no_array_hides_what_the_code_calls(backend: str) -> None:
    """Every name that a form, an import or a helper of a back end uses is reserved."""
    chosen = emitter(backend)
    texts = [*chosen.imports.values(), *chosen.helpers.values()]
    bound = {name for text in texts for name in bound_names(ast.parse(text))}
    forms = [*chosen.functions.values(), *chosen.table.values()]
    called = {form.split("(")[0] for form in forms if form.split("(")[0].isidentifier()}
    assert bound | called <= RESERVED
    assert called - bound <= set(dir(builtins))


def bound_names(tree: ast.Module) -> set[str]:
    """What a piece of code defines for those behind it."""
    found: set[str] = set()
    for node in tree.body:
        inside = (
            [*node.body, *(part for handler in node.handlers for part in handler.body)]
            if isinstance(node, ast.Try)
            else [node]
        )
        for part in inside:
            if isinstance(part, ast.Import | ast.ImportFrom):
                found |= {(alias.asname or alias.name).split(".")[0] for alias in part.names}
            elif isinstance(part, ast.FunctionDef):
                found.add(part.name)
    return found


def test_the_source_of_an_in_place_update_is_functional_in_jax() -> None:
    lines = source_for("jax", derive("sum[t,k](E[w[t],k]**2)", {"E": "V,d", "w": "T:index=V"}, "E"))
    assert ".at[w].add(E_taken)" in lines
    assert "+=" not in lines
