"""Your own notes as a catalogue: every entry works with list, show, derive, verify, audit and export.

    gradproof --catalogue examples/my_notes.py list --topic notes
    gradproof --catalogue examples/my_notes.py derive notes.ridge
    gradproof --catalogue examples/my_notes.py export notes.ridge notes.gram --format html -o notes.html

An entry has an identifier (topic.name), titles in English and Chinese, a kind, a source, a verdict and a statement in
LaTeX. What it states is given in the expression language (`gradproof derive --help`):

* a gradient: `expression` with the `shapes` of its arrays, and `wrt`, the variables; a `cotangent` if it is no scalar;
* an identity: pairs `Identity(left, right, shapes)`;
* a formula that you found somewhere: `Claim(expression, shapes, wrt, claim, expected)`, expected "proved" or "refuted";
* what is right (LaTeX) where the document's form, the statement, is not: `right`;
* an expectation or a variance: `Moment(kind, expression, shapes, value)`, with the distributions in the shapes;
* numbers: `evidence="my_notes:function"`, this file's name and a function in it that returns rows of `Evidence`, which
  `same`, `at_most`, `at_least`, `apart` and `holds` make.
"""

import numpy as np

from gradproof.symbolic.catalogue import Claim, Entry, Identity, Moment, add
from gradproof.symbolic.catalogue.evidence import Evidence, at_most

RIDGE = "sum((X @ w - y)**2)/(2*n) + lam/2*sum(w**2)"
SHAPES = {"X": "n,d", "w": "d", "y": "n", "lam": ""}

add(
    Entry(
        "notes.ridge",
        "Ridge regression",
        "岭回归",
        "gradient",
        "my notes, lecture 3",
        "corrected",
        r"\bar w = X^\top (Xw - y) + \lambda w",
        RIDGE,
        SHAPES,
        ("w",),
        claims=(
            Claim(
                RIDGE, SHAPES, "w", "X.T @ (X @ w - y) + lam*w", "refuted", "as I had it on the slide: 1/n is missing"
            ),
            Claim(RIDGE, SHAPES, "w", "X.T @ (X @ w - y)/n + lam*w", "proved", "with the factor 1/n"),
        ),
        right=r"\bar w = \tfrac1n X^\top (Xw - y) + \lambda w",
        note="The slide had no 1/n in front of the first term.",
        note_zh="讲义中第一项漏了系数 1/n。",
    )
)

add(
    Entry(
        "notes.gram",
        "The Gram matrix and the squared distance",
        "格拉姆矩阵与距离平方",
        "identity",
        "my notes, lecture 3",
        "proved",
        r"\lVert x - z \rVert^2 = x \cdot x - 2\, x \cdot z + z \cdot z",
        identities=(Identity("sum((x - z)**2)", "x @ x - 2*x @ z + z @ z", {"x": "d", "z": "d"}),),
    )
)

add(
    Entry(
        "notes.mean",
        "The variance of a mean",
        "均值的方差",
        "statistic",
        "my notes, lecture 4",
        "proved under assumptions",
        r"\operatorname{Var}(\bar x) = \sigma^2/n",
        moments=(Moment("variance", "mean(x)", {"x": "n:iid=mu,sigma**2"}, "sigma**2/n"),),
        assumptions=("the entries of x are independent, with the same mean and variance",),
    )
)


def shrinkage() -> list[Evidence]:
    """The ridge estimate of random data gets shorter as λ grows."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), rng.normal(size=30)
    found, before = [], float(np.linalg.norm(np.linalg.lstsq(X, y)[0]))
    for lam in (0.1, 1, 10, 100):
        length = float(np.linalg.norm(np.linalg.solve(X.T @ X + lam * np.eye(4), X.T @ y)))
        found.append(at_most(f"length of the estimate at λ = {lam}", length, before))
        before = length
    return found


add(
    Entry(
        "notes.shrinkage",
        "Ridge estimates shrink",
        "岭回归估计的收缩",
        "experiment",
        "my notes, lecture 4",
        "experiment",
        r"\lambda < \lambda' \;\Rightarrow\; \lVert w_{\lambda'} \rVert \le \lVert w_\lambda \rVert",
        evidence="my_notes:shrinkage",
    )
)
