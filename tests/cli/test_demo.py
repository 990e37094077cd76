"""The README's tour runs through and leaves its files."""

import pytest

from gradproof.cli.commands import demo
from gradproof.cli.main import run


def test_the_demo_derives_compares_and_trains(tmp_path, capsys, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(demo, "CMU_STEPS", 6)
    monkeypatch.setattr(demo, "CMU_WORDS", 20)
    assert run(["demo", "-o", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    assert "S̄ = A ⊙ (Ā − rowsum(A ⊙ Ā))" in shown
    assert "31 of 31 printed numbers" in shown
    assert "20 held-out words, beam of 5: WER" in shown
    written = {
        path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*") if path.is_file()
    }
    assert {"attention.tex", "attention.md", "attention.py", "tiny/loss.csv", "tiny/parameters.json"} <= written
    assert {"cmudict/checkpoint.safetensors", "cmudict/loss.png"} <= written
