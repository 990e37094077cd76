"""Export: LaTeX, Markdown, HTML, a notebook, PDF; and a user's own notes."""

import json
import re
import shutil
import subprocess
import unicodedata
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

from gradproof.cli.book import figures as book_figures
from gradproof.cli.book import latex as book_latex
from gradproof.cli.book import pages as book
from gradproof.cli.book import web as book_web
from gradproof.cli.commands.export import document
from gradproof.cli.commands.notes import load
from gradproof.cli.main import run
from gradproof.cli.output.latex_text import escaped, tex
from gradproof.models.experiments import Experiment
from gradproof.symbolic.catalogue import Entry, Identity, Moment, add, entries, get, remove
from gradproof.symbolic.catalogue.verdict import verdict_of
from gradproof.symbolic.errors import GradproofError

SOME = [
    "softmax.jacobian",
    "softmax.shift",
    "loss.label_smoothing",
    "lm.gradient_accumulation",
    "decode.top_p",
    "adam.bias_correction",
]
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "my_notes.py"


@pytest.fixture(scope="module", params=["en", "zh"])
def pages(request) -> list[book.Page]:
    return book.pages([get(identifier) for identifier in SOME], request.param, True, True)


@pytest.fixture
def notes():
    added = load(str(EXAMPLE))
    yield added
    for identifier in added:
        remove(identifier)


def test_page_says_what_it_rests_on() -> None:
    page = book.page(get("lm.gradient_accumulation"))
    assert page.passed
    assert page.rests_on == "2 identities proved, 1 formula confirmed, 1 formula refuted, 3 numbers"


def test_latex(pages) -> None:
    source = book_latex.book(pages)
    assert source.count(r"\begin{document}") == source.count(r"\end{document}") == 1
    for page in pages:
        assert page.title in source and escaped(page.entry.id) in source
    for name in ("enumerate", "longtable", "verbatim", "aligned"):
        assert source.count(rf"\begin{{{name}}}") == source.count(rf"\end{{{name}}}") > 0
    assert r"\tableofcontents" in source and book.word("audit", pages[0].lang) in source


def test_english_latex_is_ascii(pages) -> None:
    """Plain pdflatex takes it."""
    if pages[0].lang == "en":
        assert book_latex.book(pages).isascii()


def test_every_sign_of_the_catalogue_is_known_to_latex() -> None:
    for entry in entries():
        said = [
            entry.title,
            entry.note,
            *entry.assumptions,
            *(i.says for i in entry.identities),
            *(c.says for c in entry.claims),
        ]
        for text in said:
            assert "[U+" not in tex(text) and tex(text).isascii(), (entry.id, text)
        assert entry.statement.isascii() or "“" in entry.statement, entry.id


@pytest.mark.parametrize("engine, lang", [("pdflatex", "en"), ("xelatex", "zh")])
def test_it_compiles(engine: str, lang: str, tmp_path) -> None:
    if not shutil.which(engine):
        pytest.skip(f"no {engine}")
    found = book_latex.pdf(document([get(identifier) for identifier in SOME], "latex", lang), lang)
    assert found[:5] == b"%PDF-"


def test_markdown(pages) -> None:
    text = book_web.markdown(pages)
    assert text.count("$$") % 2 == 0 and text.count("```") % 2 == 0
    for page in pages:
        assert f'<a id="{book_web.anchor(page)}"></a>' in text and f"](#{book_web.anchor(page)})" in text


def test_html(pages) -> None:
    text = book_web.html(pages)
    assert not re.search(r'(?:src|href)="(?!#)', text), "nothing is loaded from elsewhere"
    formulas = re.findall(r"<math.*?</math>", text, re.S)
    assert formulas
    for formula in formulas:
        ElementTree.fromstring(formula)
    targets = set(re.findall(r'href="#([^"]+)"', text))
    assert targets == {book_web.anchor(page) for page in pages} <= set(re.findall(r'id="([^"]+)"', text))


def test_every_statement_has_mathml() -> None:
    for entry in entries():
        for formula in re.findall(r"<math.*?</math>", book_web.mathml(entry.statement), re.S):
            assert "\\" not in "".join(ElementTree.fromstring(formula).itertext()), entry.id


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_notebook_reruns(lang: str, notes) -> None:
    chosen = [get(identifier) for identifier in [*SOME, "notes.ridge"]]
    cells = json.loads(document(chosen, "ipynb", lang))["cells"]
    assert json.loads(document(chosen, "ipynb", lang))["cells"] == cells
    names: dict = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert names["entry"].id == "notes.ridge" and names["report"].passed


def test_notebook_loads_the_notes(notes) -> None:
    text = document([get("notes.gram")], "ipynb", notes=str(EXAMPLE))
    assert f"load({str(EXAMPLE)!r})" in "".join(json.loads(text)["cells"][0]["source"])


def test_command(tmp_path, capsys) -> None:
    path = tmp_path / "a.md"
    assert run(["export", "softmax.shift", "-o", str(path)]) == 0
    assert path.read_text().startswith('<a id="softmax-shift"></a>')
    assert run(["export", "softmax.shift", "--format", "html", "-o", str(tmp_path / "a")]) == 0
    assert run(["--catalogue", str(EXAMPLE), "export", "notes.gram", "-o", str(tmp_path / "b.html")]) == 0
    for entry in list(entries("notes")):
        remove(entry.id)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "a.md", "b.html"]


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["export", "-o", "a.md"], "name the formulas"),
        (["export", "softmax.shift", "--all", "-o", "a.md"], "name the formulas"),
        (["export", "softmax.shift", "-o", "a.doc"], "tells no format"),
        (["export", "softmax.shift", "-o", "/nowhere/a.md"], "does not exist"),
        (["export", "softmax.shif", "-o", "a.md"], "did you mean softmax.shift"),
    ],
)
def test_wrong_use(arguments: list[str], said: str, capsys) -> None:
    assert run(arguments) == 2
    assert said in capsys.readouterr().err


def test_no_tex(monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert run(["export", "softmax.shift", "-o", str(tmp_path / "a.pdf")]) == 2
    assert "no TeX is installed" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_tex_error_is_reported(monkeypatch) -> None:
    failed = subprocess.CompletedProcess([], 1, "! Undefined control sequence.\nl.7 \\foo\n", "")
    monkeypatch.setattr(shutil, "which", lambda name: name)
    monkeypatch.setattr(subprocess, "run", lambda *args, **kwargs: failed)
    with pytest.raises(GradproofError, match="Undefined control sequence"):
        book_latex.pdf("x", "en")


@pytest.mark.parametrize(
    "text, said",
    [
        ("x = 1/0\n", "line 1: ZeroDivisionError"),
        ("def (\n", "line 1"),
        ("x = 1\n", "adds no entry"),
        ("import sys\nsys.exit(3)\n", "ends the program"),
        (
            "from gradproof.symbolic.catalogue import Entry, add\n"
            'add(Entry("a.b", "t", "t", "gradiant", "s", "proved", "x", "sum(x)", {"x": "n"}, ("x",)))\n',
            "line 2: a.b: the kind 'gradiant'",
        ),
        (
            "from gradproof.symbolic.catalogue import Entry, add\n"
            'add(Entry("softmax.shift", "t", "t", "gradient", "s", "proved", "x", "sum(x)", {"x": "n"}, ("x",)))\n',
            "there is an entry softmax.shift already",
        ),
    ],
)
def test_notes_that_fail(text: str, said: str, tmp_path) -> None:
    path = tmp_path / "notes.py"
    path.write_text(text)
    with pytest.raises(GradproofError, match=re.escape(said)):
        load(str(path))


SQUARE = {"expression": "sum(x**2)", "shapes": {"x": "n"}, "wrt": ("x",)}
WRONG = {"expression": "sum(A @ x)", "shapes": {"x": "n", "A": "n,m"}, "wrt": ("x",)}
TWICE = Identity("x + x", "2*x", {"x": "n"})
FALSE = Identity("sum(x)**2", "sum(x**2)", {"x": "n"})


@pytest.mark.parametrize(
    "changed, said",
    [
        ({"id": "ridge"}, "an identifier is topic.name"),
        ({"id": "a b.c"}, "an identifier is topic.name"),
        ({"title": " "}, "the title is empty"),
        ({"kind": "proved"}, "an entry is Entry(id, title,"),
        ({"wrt": "x"}, "wrt=('x',)"),
        ({"mode": "gradient"}, "the mode 'gradient'"),
        ({"identities": TWICE}, "identities is a tuple of Identity(…)"),
        ({"identities": (Identity("x", "x", {"x": "n"}, "", "wrong"),)}, "proved, refuted, not 'wrong'"),
        ({"moments": (Moment("Variance", "sum(x)", {"x": "n:iid=0,1"}, "n"),)}, "not 'Variance'"),
        ({"expression": ""}, "it states nothing"),
        ({"verdict": "counterexample", "identities": (TWICE,)}, "needs what is refuted"),
        ({"verdict": "experiment"}, "needs numbers"),
        ({"expression": "", "identities": (replace(FALSE, expected="refuted"),)}, "something that is proved"),
    ],
)
def test_entries_that_are_wrong(changed: dict, said: str) -> None:
    entry = Entry("my.square", "A square", "平方", "gradient", "me", "proved", "x^2", **SQUARE)
    with pytest.raises(GradproofError, match=re.escape(said)):
        add(replace(entry, **changed))


@pytest.mark.parametrize(
    "stated, said",
    [
        (WRONG, "derivation: could not be computed  →  shapes (n, m) and (n,) do not fit"),
        (
            {"identities": (FALSE,)},
            "refuted: for n = 2; x = [1, 1]: the left side is 4, the right side gives 2  FAILED",
        ),
        ({"moments": (Moment("variance", "sum(x)", {"x": "n:iid=0,1"}, "n**2"),)}, "Var(sum(x)) = n  FAILED"),
        ({"evidence": "no_such_module:rows"}, "its evidence no_such_module:rows cannot be loaded"),
    ],
)
def test_the_audit_says_what_is_wrong(stated: dict, said: str, capsys) -> None:
    add(Entry("my.square", "A square", "平方", "claim", "me", "proved", "x^2", **stated))
    try:
        assert run(["audit", "my.square"]) == 1
        assert said in capsys.readouterr().out
        if not stated.keys() & {"expression", "evidence"}:
            assert run(["derive", "my.square", "--no-steps"]) == 0
            assert "NOT CONFIRMED" in capsys.readouterr().out
    finally:
        remove("my.square")


def test_notes_work_everywhere(notes, capsys) -> None:
    assert run(["list", "--topic", "notes", "--json"]) == 0
    own = ["notes.ridge", "notes.gram", "notes.mean", "notes.shrinkage"]
    assert [row["id"] for row in json.loads(capsys.readouterr().out)] == own
    assert run(["audit", *own]) == 0
    assert "length of the estimate at λ = 100" in capsys.readouterr().out
    assert run(["derive", "notes.ridge", "--no-steps"]) == 0
    assert book.page(get("notes.ridge")).passed


def test_signs() -> None:
    assert escaped("50 % of #1 & ~x^2 {y}") == r"50 \% of \#1 \& \textasciitilde{}x\textasciicircum{}2 \{y\}"
    assert tex("Σ_j P_ij = 1") == r"$\Sigma_{j}$ $P_{ij}$ = 1"
    assert unicodedata.normalize("NFC", "x̂") == "x̂" and tex("x̂") == r"$\hat{x}$"


@pytest.mark.parametrize(
    "text, said",
    [
        ("W_i^O", "$W_{i}^{O}$"),
        ("2a_j", "2$a_{j}$"),
        ("σ_q²σ_k²", r"$\sigma_{q}$$^{2}$$\sigma_{k}$$^{2}$"),
        ("σ_max^(t−k)", r"$\sigma_{\mathrm{max}}^{t-k}$"),
        ("(q₂)_{·v}", r"$(q_{2})_{\cdot v}$"),
        ("∂output_i", r"$\partial$$\mathrm{output}_{i}$"),
        ("10^−12", "$10^{-12}$"),
        ("h₂ ← tanh", r"$h_{2}$ $\leftarrow$ tanh"),
    ],
)
def test_indices_and_powers(text: str, said: str) -> None:
    assert tex(text) == said


MEASURED = Experiment(
    "t", ("n", "error", "gap"), ((1, 0.5, 1e-30), (10, 0.05, 1.0), (100, 0.005, 0.1)), "falls", (), True
)


def test_figure() -> None:
    """Curves over a logarithmic axis; what is 0 but for rounding is not drawn."""
    found = book_figures.chart(MEASURED)
    assert found.across == [(0.0, "1"), (0.5, "10"), (1.0, "100")]
    assert [len(curve) for curve in found.curves.values()] == [3, 2]
    assert min(y for curve in found.curves.values() for _, y in curve) == 0.0
    picture = book_figures.svg(MEASURED, str.upper)
    assert picture._repr_svg_() == picture and "ERROR" in picture
    assert len(ElementTree.fromstring(picture).findall("{http://www.w3.org/2000/svg}polyline")) == 2


def test_page_with_an_experiment(tmp_path) -> None:
    page = book.page(get("geometry.intrinsic_dimension"))
    source = book_latex.book([page])
    assert source.count(r"\polyline") == 2 and tex(page.conclusion) in source
    assert "<svg" in book_web.html([page]) and "| dimension | ambient | estimate |" in book_web.markdown([page])
    if shutil.which("pdflatex"):
        assert book_latex.pdf(source, "en")[:5] == b"%PDF-"


def test_steps_of_moments_and_proofs_are_shown() -> None:
    moments, identities = book.page(get("variance.scaled_dot_product")), book.page(get("adam.bias_correction"), "zh")
    assert {"expectation over", "variance"} <= {step.rule for step in moments.moments[0].steps}
    assert any(len(identity.steps) > 1 for identity in identities.identities)


SHAPES = '{"X": "n,d", "w": "d", "y": "n"}'
STATED = (
    "Entry('my.{0}', 't', 't', 'gradient', 'me', 'proved', r'\\nabla L = 17 X^\\top (Xw - y)', {1}, {2}, ('w',){3})"
)
LOSS = "'sum((X @ w - y)**2)'"
OWN = """
from gradproof.symbolic.catalogue import Claim, Entry, Identity, add
"""
# what a note of one's own states beside its LaTeX, the verdict on it, the exit code of audit and export
NOTES = [
    ("", "derived, statement not compared", 0),
    (", claims=(Claim({1}, {2}, 'w', '17*X.T @ (X @ w - y)', 'proved'),)", "refuted", 1),
    (", claims=(Claim({1}, {2}, 'w', '2*X.T @ (X @ w - y)', 'proved'),)", "proved", 0),
    (", claims=(Claim({1}, {2}, 'w', '2*X.T @ exp(log(X @ w - y))', 'proved'),)", "proved under assumptions", 0),
    (", identities=(Identity('X @ w - y', 'y - X @ w', {2}),)", "refuted", 1),
]


@pytest.mark.parametrize(("more", "verdict", "code"), NOTES)
def test_the_verdict_on_a_note_is_computed(more: str, verdict: str, code: int, tmp_path, capsys) -> None:
    path, target = tmp_path / "mine.py", tmp_path / "mine.md"
    entry = STATED.format("ls", LOSS, SHAPES, more.format("", LOSS, SHAPES))
    path.write_text(f"{OWN}add({entry})\n", encoding="utf-8")
    try:
        own = ["--catalogue", str(path)]
        assert run([*own, "list", "--topic", "my", "--json"]) == 0
        assert [row["verdict"] for row in json.loads(capsys.readouterr().out)] == [verdict]
        remove("my.ls")
        assert run([*own, "export", "my.ls", "-o", str(target)]) == code
        assert f"Verdict: {verdict}" in target.read_text(encoding="utf-8")
        remove("my.ls")
        capsys.readouterr()
        run([*own, "audit", "my.ls"])
        audit = capsys.readouterr().out
        assert f"[{verdict}]" in audit
        assert ("all confirmed" in audit) == verdict.startswith("proved")
    finally:
        remove("my.ls")


def test_the_verdicts_of_the_catalogue_are_those_it_documents() -> None:
    assert [verdict_of(entry) for entry in entries()] == [entry.verdict for entry in entries()]
