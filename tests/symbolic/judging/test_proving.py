"""What is proved by further steps than the normal form alone, and near misses, which no step may prove."""

import random

import pytest

from gradproof.symbolic.catalogue import Identity
from gradproof.symbolic.catalogue.proof import proof_steps, prove, sides
from gradproof.symbolic.equations.calculus import whole
from gradproof.symbolic.equations.expr import Access
from gradproof.symbolic.equations.system import Array
from gradproof.symbolic.folding.checks import same_values
from gradproof.symbolic.judging.inverses import explicit
from gradproof.symbolic.judging.normal_form import Normal
from gradproof.symbolic.judging.polynomials import NoNormalForm, expr_of
from gradproof.symbolic.judging.recurrences import closed
from gradproof.symbolic.judging.seams import split
from gradproof.symbolic.language.reader import build

SHAPES = {
    "a": "n", "s": "n", "u": "m", "x": "n+1", "y": "n+m", "W": "d,2*n", "H": "h,r", "K": "h,r", "e": "2*n", "E": "n,m",
    "b": "", "c": "", "p": "n:simplex", "P": "n,m:simplex", "q": "n", "z": "n", "V": "n,d", "A": "n,n", "w": "n:index=n",
}  # fmt: skip
JOINED = "c_1[k] = a[k]; c_1[n+k] = s[k]; "
AVERAGE = "v[0] = 0; v[i+1] = b*v[i] + (1-b)*q[i]; "
CHECKED = ("split sum", "closed form", "first entry", "next entry")
ONLINE = (
    "m_1[0] = z[0]; l[0] = 1; m_1[t+1] = maximum(m_1[t], z[t+1]);"
    " l[t+1] = l[t]*exp(m_1[t] - m_1[t+1]) + exp(z[t+1] - m_1[t+1]); "
)
WEIGHTED = "o[0,k] = V[0,k]; o[t+1,k] = o[t,k]*exp(m_1[t] - m_1[t+1]) + exp(z[t+1] - m_1[t+1])*V[t+1,k]; "

PROVED = [
    # pieces: an entry of a concatenation, a sum over its seam, a function of it
    ("W @ c_1", "W[:, :n] @ a + W[:, n:] @ s", JOINED),
    ("sum(exp(c_1))", "sum(exp(a)) + sum(exp(s))", JOINED),
    ("V @ tanh(W @ c_1)", "V @ tanh(W[:, :n] @ a + W[:, n:] @ s)", JOINED),
    ("softmax(c_1)[2*n-1]", "exp(s[n-1])/(sum(exp(a)) + sum(exp(s)))", JOINED),
    ("c_1[n:]", "s", JOINED),
    ("sum(relu(c_1) - relu(-c_1))", "sum(a) + sum(s)", JOINED),
    # entries of a recurrence at a number
    ("f[2]", "sin(sin(b))", "f[0] = b; f[i+1] = sin(f[i]) + 0*q[i]; "),
    # seams: one term, both ends, a part
    ("sum(x)", "sum[k=0:n](x[k]) + x[n]", ""),
    ("sum[k=0:n](x[k+1] - x[k])", "x[n] - x[0]", ""),
    ("sum(y)", "sum[k=0:n](y[k]) + sum[k=0:m](y[n+k])", ""),
    ("1/sum(exp(x))", "1/(exp(x[n]) + sum[k=0:n](exp(x[k])))", ""),
    ("sum[k=0:n](b**k*x[k+1])", "(sum[k=0:n+1](b**k*x[k]) - x[0])/b", ""),
    # products over letters
    ("prod[k=0:n](x[k+1]/x[k])", "x[n]/x[0]", ""),
    ("prod(c*a**2)", "c**n*prod(a)**2", ""),
    ("prod(exp(a))", "exp(sum(a))", ""),
    ("log(prod(p))", "sum(log(p))", ""),
    ("prod(p**q)", "exp(sum(q*log(p)))", ""),
    ("log(p**b)", "b*log(p)", ""),
    ("exp(-mean(log(p)))", "prod(p)**(-1/n)", ""),
    ("log(p*(P @ exp(u)))", "log(p) + log(P @ exp(u))", ""),
    ("F[i] = prod[j=0:n](where(i == j, 1, a[j])) + 0*s[i]", "prod(a)/a", ""),
    ("F[i] = prod[j=0:n](where(i == j, s[j], exp(a[j]))) + 0*s[i]", "exp(sum(a) - a)*s", ""),
    # angles
    ("sin(2*a)", "2*sin(a)*cos(a)", ""),
    ("cos(a + 2*b)", "cos(a)*(1 - 2*sin(b)**2) - 2*sin(a)*sin(b)*cos(b)", ""),
    # geometric sums
    ("(1-b)*sum[k=0:n](b**k)", "1 - b**n", ""),
    ("sum[k=0:n](exp(k*b))", "(exp(n*b) - 1)/(exp(b) - 1)", ""),
    ("sum[k=0:n](b**(2*k)/c**k)", "(b**(2*n)/c**n - 1)/(b**2/c - 1)", ""),
    # deltas whose letters must be solved in another order, and conditions on multiples
    ("vec(H.T) @ vec(K.T)", "sum(H*K)", ""),
    ("sum[i=0:n,j=0:n](a[i]*s[j]*(2*i == 2*j))", "a @ s", ""),
    ("sum[i=0:n,j=0:n](a[i]*s[j]*(2*i == 2*j + 1))", "0*b", ""),
    ("sum[i=0:n,j=0:n](a[i]*s[j]*(2*i < 2*j + 1))", "sum[i=0:n,j=0:n](a[i]*s[j]*(i <= j))", ""),
    # digits of an index
    ("F[r] = sum[i=0:n](delta(r, 2*i) + delta(r, 2*i+1)) + 0*e[r]", "F[r] = 1 + 0*e[r]", ""),
    # what is order of positive numbers is order of their logarithms; a factor that is positive leaves a condition
    ("where(exp(a) < exp(s), 1, 0)", "where(a < s, 1, 0)", ""),
    ("F[i,j] = where(P_1[i] < P_1[j], 1, 0)", "F[i,j] = where(a[i] < a[j], 1, 0)", "P_1 = softmax(a); "),
    ("where(prod(exp(a)) < prod(p), 1, 0)", "where(sum(a) < sum(log(p)), 1, 0)", ""),
    ("where(sigmoid(a) == sigmoid(s), a, s)", "s", ""),
    ("where(tanh(a) < tanh(s), 1, 0)", "where(a < s, 1, 0)", ""),
    ("where(exp(a) + p > 0, a, s)", "a", ""),
    ("F[i] = where(sum[j=0:i+1](exp(a[j])) > 0, s[i], a[i])", "s", ""),
    ("norm(a)*relu(c*b/norm(a))", "relu(c*b)", ""),
    # linear recurrences
    ("v[n]", "(1-b)*sum[i=0:n](b**(n-1-i)*q[i])", AVERAGE),
    ("f[n]", "c*b**n + sum[i=0:n](b**(n-1-i))", "f[0] = c; f[i+1] = b*f[i] + 1 + 0*q[i]; "),
    ("exp(z[i] - m_1[n-1])/l[n-1]", "softmax(z)", ONLINE),
    ("l[n-1]*exp(m_1[n-1])", "sum(exp(z))", ONLINE),
    ("F[k] = o[n-1,k]/l[n-1]", "softmax(z) @ V", ONLINE + WEIGHTED),
]

NEAR_MISSES = [
    ("W @ c_1", "W[:, :n] @ s + W[:, n:] @ a", JOINED),
    ("sum(exp(c_1))", "sum(exp(a + s))", JOINED),
    ("c_1[:n]", "s", JOINED),
    ("sum(relu(c_1))", "sum(a) + sum(s)", JOINED),
    ("f[2]", "sin(b)", "f[0] = b; f[i+1] = sin(f[i]) + 0*q[i]; "),
    ("sum(x)", "sum[k=0:n](x[k]) + x[0]", ""),
    ("sum[k=0:n](x[k+1] - x[k])", "x[n]", ""),
    ("sum(y)", "sum[k=0:n](y[k]) + sum[k=0:m](y[k])", ""),
    ("sum[k=0:n](x[k+1])", "sum[k=0:n](x[k])", ""),
    ("1/sum(exp(x))", "1/exp(x[n]) + 1/sum[k=0:n](exp(x[k]))", ""),
    ("prod[k=0:n](x[k+1]/x[k])", "x[n-1]/x[0]", ""),
    ("prod[k=0:n](x[k+1]/x[k])", "x[0]/x[n]", ""),
    ("prod(c*a**2)", "c*prod(a)**2", ""),
    ("prod(a + s)", "prod(a) + prod(s)", ""),
    ("prod(exp(a))", "exp(prod(a))", ""),
    ("F[i] = prod[j=0:n](where(i == j, 1, a[j])) + 0*s[i]", "prod(a)*a", ""),
    ("F[i] = prod[j=0:n](where(i == j, s[j], a[j])) + 0*s[i]", "prod(a)/a", ""),
    ("F[i] = prod[j=0:n](where(i + 1 == j, 1, a[j])) + 0*s[i]", "prod(a)/a", ""),  # nothing is left out for the last i
    ("sin(2*a)", "2*sin(a)", ""),
    ("cos(a + b)", "cos(a)*cos(b) + sin(a)*sin(b)", ""),
    ("log(prod(p))", "prod(log(p))", ""),
    ("prod(p**q)", "prod(p)**sum(q)", ""),
    ("log(a**2)", "2*log(a)", ""),  # a may be negative
    ("exp(-mean(log(p)))", "prod(p)**(1/n)", ""),
    ("log(a*s)", "log(a) + log(s)", ""),  # both may be negative
    ("sqrt(prod(a**2))", "prod(a)", ""),
    ("(1-b)*sum[k=0:n](b**k)", "1 - b**(n+1)", ""),
    ("sum[k=0:n](b**(2*k))", "(b**n - 1)/(b - 1)", ""),
    ("vec(H.T) @ vec(K.T)", "sum(H)*sum(K)", ""),
    ("sum[i=0:n,j=0:n](a[i]*s[j]*(2*i < 2*j + 1))", "sum[i=0:n,j=0:n](a[i]*s[j]*(i < j))", ""),
    ("sum[i=0:n,j=0:n](a[i]*s[j]*(2*i < 2*j - 1))", "sum[i=0:n,j=0:n](a[i]*s[j]*(i < j - 1))", ""),
    ("F[r] = sum[i=0:n](delta(r, 2*i)) + 0*e[r]", "F[r] = 1 + 0*e[r]", ""),
    ("where(exp(a) < exp(s), 1, 0)", "where(s < a, 1, 0)", ""),
    ("where(exp(-a) < exp(-s), 1, 0)", "where(a < s, 1, 0)", ""),
    ("where(a**2 < s**2, 1, 0)", "where(a < s, 1, 0)", ""),
    ("where(exp(a) < 2*exp(s), 1, 0)", "where(a < s, 1, 0)", ""),
    ("where(exp(a) - p > 0, a, s)", "a", ""),
    ("F[i] = where(sum[j=0:i](exp(a[j])) > 0, s[i], a[i])", "s", ""),  # an empty sum is 0
    ("where(prod(exp(a)) < sum(exp(s)), 1, 0)", "where(sum(a) < sum(s), 1, 0)", ""),
    ("c*relu(b/c)", "relu(b)", ""),
    ("v[n]", "(1-b)*sum[i=0:n](b**(n-i)*q[i])", AVERAGE),
    ("v[n]", "(1-b)*sum[i=0:n](b**i*q[i])", AVERAGE),
    ("f[n]", "b**n*c", "f[0] = c; f[i+1] = b*f[i] + 1 + 0*q[i]; "),
    ("f[n]", "b**(2**n)", "f[0] = 1; f[i+1] = b*f[i]**2 + 0*q[i]; "),
    ("exp(z[i])/l[n-1]", "softmax(z)", ONLINE),
    ("exp(z[i] - m_1[n-1])/l[n-1]", "softmax(z)", ONLINE.replace("l[0] = 1", "l[0] = 2")),
    ("exp(z[i] - m_1[n-1])/l[n-1]", "softmax(z)", ONLINE.replace("exp(m_1[t] - m_1[t+1])", "exp(m_1[t+1] - m_1[t])")),
    ("F[k] = o[n-1,k]/l[n-1]", "softmax(z) @ V", ONLINE + WEIGHTED.replace("V[t+1,k]", "V[0,k]")),
]


def identity(left: str, right: str, before: str) -> Identity:
    return Identity(before + left, right, SHAPES)


@pytest.mark.parametrize(("left", "right", "before"), PROVED)
def test_proved(left: str, right: str, before: str) -> None:
    found = prove(identity(left, right, before))
    assert found.verdict == "proved", found.how
    assert found.how.startswith(found.steps[0].reason()) and " at random points" in found.how
    assert all(step.checked for step in found.steps if step.rule in CHECKED)


@pytest.mark.parametrize(("left", "right", "before"), NEAR_MISSES)
def test_what_is_wrong_is_not_proved(left: str, right: str, before: str) -> None:
    """Neither by the symbolic steps alone, without a look at numbers, nor in the end."""
    assert proof_steps(*sides(identity(left, right, before))) is None
    assert prove(identity(left, right, before)).verdict == "refuted"


PARTS = (
    "sum(x)", "sum[k=0:n](x[k])", "sum[k=0:n](x[k+1])", "sum(y)", "sum[k=0:m](y[n+k])", "sum[k=0:n](exp(y[k]))",
    "sum(exp(y))", "sum(c_1)", "sum(sin(c_1)*e)", "sum[k=0:n](c_1[k]*c_1[n+k])", "prod(x)", "prod[k=0:n](x[k+1])",
    "prod(y)", "prod[k=0:m](y[n+k])", "sum[k=0:n](b**k)", "sum[k=0:n](b**k*x[k+1])", "sum[k=0:n+1](b**k*x[k])",
    "v[n]", "v[2]", "sum(v)", "vec(H.T) @ vec(K.T)", "sum[i=0:n,j=0:n](a[i]*s[j]*(2*i < 2*j + 1))",
)  # fmt: skip
JOINTS = ("({}) + ({})", "({}) - ({})", "({})*({})", "({})/({})", "exp(sin({}))*({})", "({})**2 - ({})")


@pytest.mark.parametrize("seed", range(30))
def test_steps_keep_the_value(seed: int) -> None:
    """A random expression of sums over parts of ranges, after all steps: the same value at random points."""
    rng = random.Random(seed)
    text = rng.choice(JOINTS).format(rng.choice(PARTS), rng.choice(PARTS))
    system = build(JOINED + AVERAGE + rng.choice(JOINTS).format(text, rng.choice(PARTS)), SHAPES)
    simpler, _ = closed(system)
    normal = Normal(simpler, patient=True)
    try:
        form = expr_of(split(normal, normal.of(Access(*system.outputs), {}), {}))
    except NoNormalForm:
        pytest.skip("the normal form is too large")
    array = Array("form")
    old, new = (system.extended([array], [whole(array, side)], ["form"]) for side in (Access(*system.outputs), form))
    assert "at random points" in same_values(old, new, ["form"])


MATRICES = [
    # a matrix, and what its inverse and its determinant are written with: one row for each rule, and rules in each other
    ("A @ B", {"A": "n,n", "B": "n,n"}),
    ("A.T @ B", {"A": "n,n", "B": "n,n"}),
    ("A @ B @ C", {"A": "n,n", "B": "n,n", "C": "n,n"}),
    ("A @ A", {"A": "n,n"}),
    ("3*A", {"A": "n,n"}),
    ("s*A.T", {"A": "n,n", "s": ""}),
    ("inv(A) @ B", {"A": "n,n", "B": "n,n"}),
    ("diag(x)", {"x": "n"}),
    ("diag(x) @ A", {"A": "n,n", "x": "n"}),
    ("A + outer(u, v)", {"A": "n,n", "u": "n", "v": "n"}),
    ("s*eye(n) + outer(u, u)", {"u": "n", "s": ""}),
    ("diag(x) - 2*outer(u, v)", {"x": "n", "u": "n", "v": "n"}),
    ("A @ B + outer(u, v)", {"A": "n,n", "B": "n,n", "u": "n", "v": "n"}),
    ("A + U @ V", {"A": "n,n", "U": "n,k", "V": "k,n"}),
    ("eye(d) + X.T @ X", {"X": "m,d"}),
]


@pytest.mark.parametrize("function", ["inv", "det", "logdet"])
@pytest.mark.parametrize(("matrix", "shapes"), MATRICES)
def test_inverses_written_out_are_the_inverses(matrix: str, shapes: dict[str, str], function: str) -> None:
    system = build(f"{function}({matrix})", shapes)
    written, changed, _ = explicit(system)
    assert changed
    assert "equal" in same_values(system, written, system.outputs)


def test_a_matrix_without_a_rule_stays_what_it_is() -> None:
    system = build("inv(tanh(A))", {"A": "n,n"})
    assert explicit(system) == (system, [], system)


@pytest.mark.parametrize("name", ["VALUE", "VALUE1", "VALUE_right", "a_right", "a1"])
def test_the_names_of_a_proof_step_aside(name: str) -> None:
    """Both sides define a; what the proof calls them is no name of the user's."""
    shapes = {"x": "n", name: "n"}
    assert prove(Identity(f"a = 2*x; sum(a*{name})", f"a = x + x; sum({name}*a)", shapes)).verdict == "proved"
    assert prove(Identity(f"a = 2*x; sum(a*{name})", f"a = x - x; sum({name}*a)", shapes)).verdict == "refuted"
