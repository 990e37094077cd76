"""The rules that a derivation may use: their names, and why each is allowed, in English and Chinese."""

from __future__ import annotations

REASONS: dict[str, dict[str, str]] = {
    "forward": {
        "en": "the expression as a system of index equations",
        "zh": "把表达式写成指标方程组",
    },
    "cotangent": {
        "en": "the derivative of the result with respect to itself, or the cotangent that is given for it",
        "zh": "结果对自身的导数，或为它给定的上游梯度",
    },
    "chain rule": {
        "en": "{name} receives one term from every place where it is read: {readers}",
        "zh": "{name} 在每个被读取之处收到一项：{readers}",
    },
    "no dependence": {
        "en": "the result does not depend on {name}",
        "zh": "结果不依赖于 {name}",
    },
    "kept names": {
        "en": "helper values are written in the names that are kept",
        "zh": "用保留的量表示辅助量",
    },
    "simplify": {
        "en": "what does not depend on the summed letter leaves the sum; deltas are solved; equal terms are collected",
        "zh": "与求和指标无关的因子移出求和号，消去 δ，合并同类项",
    },
    "simplify with facts": {
        "en": "factors leave the sums, and these facts are used: {facts}",
        "zh": "因子移出求和号，并使用事实：{facts}",
    },
    "substitute": {
        "en": "adjoints that are read once are put where they are read",
        "zh": "只用一次的伴随量代入使用处",
    },
    "tangent": {
        "en": "the change of {name} is the sum over what it reads of derivative times change",
        "zh": "{name} 的微分是对其所读各量的导数与微分之积求和",
    },
    "unit cotangent": {
        "en": "the cotangent is a Kronecker delta: one entry of the result at a time",
        "zh": "上游梯度取克罗内克 δ：逐个考察结果的分量",
    },
}


def reason(rule: str, lang: str = "en", **words: str) -> str:
    """One sentence on why a rule may be used.

    >>> reason("no dependence", name="x")
    'the result does not depend on x'
    """
    return REASONS[rule][lang].format(**words)
