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
* numbers: `evidence="module:function"`, a function that returns rows of `Evidence`.
"""

from gradproof.symbolic.catalogue import Claim, Entry, Identity, add

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
