"""The words of reports and books, in English and Chinese."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradproof.cli.chinese import chinese, chinese_latex

if TYPE_CHECKING:
    from gradproof.symbolic.catalogue import Entry

WORDS: dict[str, dict[str, str]] = {
    "book": {"en": "Formulas, derived and checked", "zh": "公式：推导与验证"},
    "contents": {"en": "Contents", "zh": "目录"},
    "index": {"en": "Index of formulas", "zh": "公式索引"},
    "audit": {"en": "Audit", "zh": "审计"},
    "audit says": {
        "en": "Every documented statement, the verdict on it, and what the verdict rests on.",
        "zh": "文档中的每条陈述、对它的判定，以及判定的依据。",
    },
    "source": {"en": "Source", "zh": "出处"},
    "sources": {
        "en": "Sources: N lecture derivations; C a chapter, with the section; S a survey, with its extension.",
        "zh": "出处：N 为讲义推导；C 为书中一章，附节号；S 为综述，附扩展编号。",
    },
    "kind": {"en": "Kind", "zh": "类型"},
    "verdict": {"en": "Verdict", "zh": "判定"},
    "assumptions": {"en": "Assumptions", "zh": "假设"},
    "result": {"en": "Result", "zh": "结果"},
    "steps": {"en": "Steps", "zh": "步骤"},
    "example": {"en": "Example", "zh": "算例"},
    "checked": {"en": "checked", "zh": "检验"},
    "identities": {"en": "Identities", "zh": "恒等式"},
    "claims": {"en": "Claims", "zh": "待检公式"},
    "moments": {"en": "Moments", "zh": "矩"},
    "evidence": {"en": "Evidence", "zh": "证据"},
    "computed": {"en": "computed", "zh": "计算值"},
    "expected": {"en": "expected", "zh": "应为"},
    "experiment": {"en": "Experiment", "zh": "实验"},
    "note": {"en": "Note", "zh": "说明"},
    "document": {"en": "The document", "zh": "文档写法"},
    "right": {"en": "Right is", "zh": "正确形式"},
    "statement": {"en": "Statement", "zh": "陈述"},
    "audit of": {"en": "Audit of the documented formulas", "zh": "文档公式审计"},
    "says": {"en": "says", "zh": "内容"},
    "outcome": {"en": "outcome", "zh": "结果"},
    "entries": {"en": "entries", "zh": "个条目"},
    "all confirmed": {"en": "all confirmed", "zh": "全部得到确认"},
    "not compared": {"en": "not compared with what they state", "zh": "未与陈述比较"},
    "not confirmed": {"en": "NOT CONFIRMED", "zh": "未得到确认"},
    "derivation": {"en": "derivation", "zh": "推导"},
    "identity": {"en": "identity", "zh": "恒等式"},
    "claim": {"en": "claim", "zh": "待检公式"},
    "moment": {"en": "moment", "zh": "矩"},
    "number": {"en": "number", "zh": "数值"},
    "identifier": {"en": "identifier", "zh": "标识"},
    "title": {"en": "title", "zh": "标题"},
    "equations": {"en": "equations", "zh": "方程"},
    "shapes": {"en": "shapes", "zh": "形状"},
    "variables": {"en": "variables", "zh": "变量"},
    "cotangent": {"en": "cotangent", "zh": "上游梯度"},
    "assumption": {"en": "assumption", "zh": "假设"},
    "with respect to": {"en": "with respect to", "zh": "对以下变量求导"},
    "formula": {"en": "formula", "zh": "公式"},
    "rests on": {"en": "rests on", "zh": "依据"},
    "ok": {"en": "ok", "zh": "通过"},
    "failed": {"en": "FAILED", "zh": "未通过"},
    "colon": {"en": ": ", "zh": "："},
    "comma": {"en": ", ", "zh": "，"},
    "semicolon": {"en": "; ", "zh": "；"},
    "stop": {"en": ". ", "zh": "。"},
}

# kinds and verdicts in Chinese
CHINESE = {
    "gradient": "梯度", "identity": "恒等式", "statistic": "统计量", "bound": "界", "algorithm": "算法",
    "count": "计数", "claim": "论断", "experiment": "实验", "proved": "已证明", "analogy": "类比",
    "proved under assumptions": "在假设下已证明", "corrected": "已更正", "counterexample": "反例",
    "refuted": "被否定", "undecided": "未定", "derived, statement not compared": "已推导，未与陈述比较",
}  # fmt: skip


def word(key: str, lang: str) -> str:
    return WORDS[key][lang]


def said(text: str, lang: str) -> str:
    """A kind or a verdict in the language of the book."""
    return CHINESE[text] if lang == "zh" else text


# what a verdict rests on: singular, plural, Chinese
COUNTED: dict[str, tuple[str, str]] = {
    "checked step": ("checked steps", "个已检验的步骤"),
    "identity proved": ("identities proved", "个已证明的恒等式"),
    "identity at random points": ("identities at random points", "个在随机点上成立的恒等式"),
    "identity refuted": ("identities refuted", "个被否定的恒等式"),
    "formula confirmed": ("formulas confirmed", "个被确认的公式"),
    "formula refuted": ("formulas refuted", "个被否定的公式"),
    "moment derived": ("moments derived", "个推导出的矩"),
    "number": ("numbers", "个数值"),
}


def counted(count: int, key: str, lang: str) -> str:
    """So many of something.

    >>> counted(2, "number", "en"), counted(2, "number", "zh")
    ('2 numbers', '2 个数值')
    """
    many, chinese = COUNTED[key]
    return f"{count} {chinese if lang == 'zh' else key if count == 1 else many}"


# the rules of a derivation in Chinese; what each allows is said by `gradproof.symbolic.folding.rules`
RULES = {
    "forward": "前向方程", "cotangent": "上游梯度", "chain rule": "链式法则", "once more": "再次求导",
    "no dependence": "无依赖",
    "kept names": "保留的名称", "simplify": "化简", "simplify with facts": "利用事实化简", "substitute": "代入",
    "tangent": "微分", "unit cotangent": "单位上游梯度", "expand": "展开", "expectation over": "取期望",
    "deltas": "消去 δ", "half by symmetry": "由对称性取半", "variance": "方差", "covariance": "协方差",
    "geometric sum": "等比求和", "collect": "合并同类项", "closed recurrence": "递推的闭式",
    "inputs": "输入", "named value": "命名的量", "normal form": "规范形", "cleared": "规范形",
    "inverse written out": "写出逆矩阵", "split sum": "拆分求和", "closed form": "闭式", "first entry": "首项",
    "next entry": "下一项",
    "last digit": "分情形", "case": "情形",
}  # fmt: skip


def rule(name: str, lang: str) -> str:
    return RULES.get(name, name) if lang == "zh" else name


def phrased(text: str, lang: str) -> str:
    """What an entry, a check or a proof says, in the language of the report; formulas are the same in both.

    >>> phrased("by definition", "zh"), phrased("by definition", "en")
    ('按定义', 'by definition')
    """
    return chinese(text) if lang == "zh" else text


def formula(latex: str, lang: str) -> str:
    """A formula in LaTeX with its words in the language of the report."""
    return chinese_latex(latex) if lang == "zh" else latex


@dataclass(frozen=True)
class Described:
    """What a documented formula says of itself, in one of the languages."""

    entry: Entry
    lang: str

    @property
    def title(self) -> str:
        return self.entry.title_zh if self.lang == "zh" else self.entry.title

    @property
    def note(self) -> str:
        return self.entry.note_zh if self.lang == "zh" else self.entry.note

    @property
    def kind(self) -> str:
        return said(self.entry.kind, self.lang)

    @property
    def verdict(self) -> str:
        from gradproof.symbolic.catalogue.verdict import verdict_of

        return said(verdict_of(self.entry), self.lang)

    @property
    def statement(self) -> str:
        return formula(self.entry.statement, self.lang)

    @property
    def right(self) -> str:
        """What is right where the statement is not; empty where it is."""
        return formula(self.entry.right, self.lang)

    @property
    def assumptions(self) -> list[str]:
        return [phrased(assumption, self.lang) for assumption in self.entry.assumptions]
