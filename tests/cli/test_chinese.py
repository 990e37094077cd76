"""With `--lang zh` everything that is said is Chinese; names, identifiers and formulas are the same in both languages."""

import ast
import json
import pickle
import re
from pathlib import Path
from string import Formatter

import pytest

from gradproof.cli.book import latex as book_latex
from gradproof.cli.book import pages as book
from gradproof.cli.book import web as book_web
from gradproof.cli.chinese import TEXTS, chinese
from gradproof.cli.commands.audit import as_latex, as_markdown, as_text, audited
from gradproof.cli.main import run
from gradproof.cli.output import report
from gradproof.cli.output.words import RULES, formula, phrased
from gradproof.models import experiments
from gradproof.symbolic.catalogue import Entry, derivation, entries
from gradproof.symbolic.deriving.derivation import Derivation
from gradproof.symbolic.folding.rules import REASONS
from gradproof.symbolic.phrases import joined, phrase

ROOT = Path(__file__).resolve().parents[2]

# names of people, methods, programs and units; operators as they are printed
NAMES = re.findall(
    r"\w+",
    """Adam AdamW Attention BLEU Banach BatchNorm Beta Concat Gershgorin Jensen LayerNorm McDiarmid MultiHead Post Rademacher ReLU RoPE
Sinkhorn Softmax SwiGLU Swish Transformer Xavier XeLaTeX alpha ambient argmax argmin cast colmean colsum const diag diagonal float
gradproof gram head input intrinsic logistic logit logits math mean model mpmath onehot optim output rowmean rowsum round sacrebleu smooth softmax
tanh torch where base clip norm mathrm greedy sigma gamma true""",
)
SHORT = [
    "the",
    "and",
    "for",
    "not",
    "of",
    "by",
    "from",
    "than",
    "that",
    "are",
    "its",
    "has",
    "any",
    "all",
    "one",
    "two",
    "with",
]
CODE = re.compile(r"```.*?```|`[^`]*`|\\begin\{verbatim\}.*?\\end\{verbatim\}|<pre>.*?</pre>|<[^>]*>", re.DOTALL)
LATEX = re.compile(r"\\(?:begin|end|label|texttt)\{[^}]*\}(?:\[[a-z,]*\])?|\\[A-Za-z]+")


def english(text: str, entry: Entry | None = None) -> list[str]:
    """The words of a text that are neither Chinese, nor a name, nor part of a formula or identifier."""
    text = LATEX.sub(" ", CODE.sub(" ", text).replace(r"\_", "_"))
    text = re.sub(r"\w+(?:[_.]\w+)+|\w*\d\w*|\b[ijklm]+\b", " ", text)  # identifiers, indexed names, indices
    known = {*NAMES, *(re.findall("[A-Za-z]+", " ".join(typed(entry))) if entry else [])}
    return [word for word in re.findall("[A-Za-z]{2,}", text) if word not in known and (len(word) > 3 or word in SHORT)]


def typed(entry: Entry) -> list[str]:
    """The expressions of an entry: their words are code wherever they are printed."""
    found = [entry.expression, entry.id, *entry.names.values(), *entry.shapes]
    found += [text for i in entry.identities for text in (i.left, i.right)]
    found += [text for c in entry.claims for text in (c.expression, c.claim, c.wrt, *c.shapes)]
    return found + [text for m in entry.moments for text in (m.expression, *m.shapes)]


@pytest.fixture(autouse=True)
def _derived_once(monkeypatch) -> None:
    """An entry is derived once for all the outputs that show it."""
    real, found = derivation.derive_entry, {}

    def once(entry: Entry, lang: str = "en") -> Derivation:
        if (entry.id, lang) not in found:
            found[entry.id, lang] = real(entry, lang)
        return found[entry.id, lang]

    monkeypatch.setattr(derivation, "derive_entry", once)
    monkeypatch.setattr(book, "derive_entry", once)


def test_no_english_is_found_by_the_test_itself() -> None:
    assert english("按定义 W_h @ x, softmax(QKᵀ) $\\bar{x}_{it}$ layernorm.backward 2.5e-3") == []
    assert english("the gradient of the loss，按定义") == ["the", "gradient", "of", "the", "loss"]


@pytest.mark.parametrize("entry", list(entries()), ids=lambda entry: entry.id)
def test_entry(entry: Entry) -> None:
    """The audit with its numbers, the page of the book in each format, the derivation."""
    found = audited(entry, "zh")
    page = book.page(entry, "zh", True, False)
    shown = [as_text([found]), as_markdown([found]), as_latex([found]).split(r"\begin{document}")[1]]
    shown += [f"{line.says} {line.outcome}" for line in found.lines]
    shown += [book_latex.section(page), "\n".join(book_web._markdown_page(page, "#")), book_web._html_page(page)]
    if entry.expression:
        derived = report.Report(derivation.derive_entry(entry, "zh"), entry, None, "denominator", True, True, "zh")
        shown += [report.as_text(derived), report.as_latex(derived), report.as_markdown(derived)]
    for text in shown:
        assert english(text, entry) == []


@pytest.mark.parametrize(
    "arguments", [["list"], ["show", "rnn.cell"], ["verify", "softmax.shift", "loss.cross_entropy"]]
)
def test_commands(arguments: list[str], capsys) -> None:
    assert run(["--lang", "zh", *arguments]) == 0
    assert english(capsys.readouterr().out) == []


def test_json(capsys) -> None:
    """Keys and the values that programs read (kinds, verdicts) are the same in both languages."""
    assert run(["--lang", "zh", "audit", "--topic", "transport", "--format", "json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["entries"]
    assert entry["verdict"] == "proved under assumptions"
    said = [entry["title"], entry["note"], *entry["assumptions"]]
    assert [word for text in said for word in english(text)] == []


@pytest.mark.parametrize("rule", REASONS)
def test_rule_has_a_name(rule: str) -> None:
    assert rule in RULES


ROWS = [key for key in TEXTS if re.search(r"\{\w*\}", key)]  # those with places


@pytest.mark.parametrize("english_text", ROWS)
def test_row_has_the_places_of_its_english(english_text: str) -> None:
    """Each value is said once in English, and at least once in Chinese."""
    names = [name for _, name, _, _ in Formatter().parse(english_text) if name is not None]
    values = [f"⟨{k}⟩" for k, name in enumerate(names) if not name]
    told = chinese(phrase(english_text, *values, **{name: f"⟨{name}⟩" for name in names if name}))
    marks = {*values, *(f"⟨{name}⟩" for name in names if name)}
    assert set(re.findall("⟨\\w+⟩", told)) == marks, told


def templates() -> set[str]:
    """The first argument of every `phrase(…)` in the code; a name stands for what it is bound to in its module."""
    found = set()
    for path in (
        path for package in ("symbolic", "numeric", "models", "cli") for path in (ROOT / package).rglob("*.py")
    ):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        bound = {
            n.targets[0].id: n.value
            for n in tree.body
            if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)
        }
        calls = (n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "phrase")
        for first in (call.args[0] for call in calls):
            first = bound[first.id] if isinstance(first, ast.Name) else first
            if isinstance(first, ast.Constant):
                found.add(first.value)
            else:  # by key, as the reasons of the rules are: `phrase(REASONS[rule]["en"], …)`
                assert ast.unparse(first) == "REASONS[rule]['en']", f"{path}: {ast.unparse(first)}"
    return found


def test_every_template_has_a_row_and_every_row_a_template() -> None:
    reasons = {words["en"] for words in REASONS.values()}
    assert templates() == set(ROWS) - reasons


def test_phrases_are_strings() -> None:
    """They go to other processes with their parts, and to JSON as text."""
    told = joined("; ", [phrase("gradient of {}", "W"), phrase("{count} {things}", count=2, things="passed")])
    again = pickle.loads(pickle.dumps(told))
    assert (again, chinese(again)) == (told, chinese(told)) == ("gradient of W; 2 passed", "W 的梯度；通过 2 个")
    assert json.dumps(again) == '"gradient of W; 2 passed"'


@pytest.mark.parametrize("name", ["dimension", "ntk_width", "saturation"])
def test_experiment(name: str) -> None:
    found = experiments.run(name)
    for text in (found.title, *found.columns, found.conclusion, *(check.label for check in found.checks)):
        assert english(phrased(text, "zh")) == []


def test_programs_keep_their_semicolons() -> None:
    assert chinese(joined("; ", ["a = 1; b = 2", "the mean is 0"])) == "a = 1; b = 2；均值为 0"
    assert formula(r"x > 1 \Rightarrow \text{global stability}", "zh") == r"x > 1 \Rightarrow \text{全局稳定}"
    assert phrased("a sentence of one's own", "zh") == "a sentence of one's own"
