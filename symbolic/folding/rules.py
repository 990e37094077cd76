"""The rules that a derivation may use: their names, and why each is allowed, in English and Chinese."""

from __future__ import annotations

from gradproof.symbolic.phrases import phrase

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
    "once more": {
        "en": "the gradient with respect to {name} that was found is differentiated in its turn",
        "zh": "对已求得的关于 {name} 的梯度再次求导",
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
    # --- moments
    "expand": {
        "en": "the expectation of a sum is the sum of the expectations; multiplied sums get letters of their own",
        "zh": "和的期望等于期望之和；相乘的求和各用自己的指标",
    },
    "expectation over": {
        "en": "{name} is independent of everything else and its entries are independent of each other: {formula}",
        "zh": "{name} 与其他量独立，各元素相互独立：{formula}",
    },
    "deltas": {
        "en": "a sum over a delta keeps one term; what does not depend on the summed letter leaves the sum",
        "zh": "对 δ 求和只留一项；与求和指标无关的因子移出求和号",
    },
    "half by symmetry": {
        "en": "{name} and −{name} have one distribution, so that the positive half of a power is half of it on average",
        "zh": "{name} 与 −{name} 同分布，因此幂的正半部分在平均意义下为一半",
    },
    "variance": {
        "en": "the variance is E[X²] − E[X]²",
        "zh": "方差为 E[X²] − E[X]²",
    },
    "covariance": {
        "en": "the covariance is E[XY] − E[X] E[Y]",
        "zh": "协方差为 E[XY] − E[X] E[Y]",
    },
    "geometric sum": {
        "en": "a geometric sum: 1 + r + … + r^(n−1) = (1 − r^n)/(1 − r)",
        "zh": "等比数列求和：1 + r + … + r^(n−1) = (1 − r^n)/(1 − r)",
    },
    "collect": {
        "en": "equal terms are collected, common factors put in front",
        "zh": "合并同类项，提取公因子",
    },
    "closed recurrence": {
        "en": "the recurrence of {name} is linear: unrolled, it is a sum over all earlier steps",
        "zh": "{name} 的递推是线性的：展开为对此前各步求和",
    },
    # --- proofs
    "normal form": {
        "en": "both sides have the same normal form, for all sizes",
        "zh": "对所有尺寸，两边的规范形相同",
    },
    "cleared": {
        "en": "the difference has normal form 0 for all sizes",
        "zh": "差的规范形对所有尺寸均为 0",
    },
    "inverse written out": {
        "en": "the inverse or the determinant of a product, a multiple or a sum is written with those of its parts",
        "zh": "把乘积、倍数或和的逆与行列式用各部分的逆与行列式写出",
    },
    "split sum": {
        "en": "a sum or product is split where the range of another one ends",
        "zh": "在另一求和（求积）区间的端点处拆开",
    },
    "closed form": {
        "en": "the closed form of {name}, by induction",
        "zh": "用归纳法得 {name} 的闭式",
    },
    "first entry": {
        "en": "the closed form gives the first entry of {name}",
        "zh": "闭式给出 {name} 的首项",
    },
    "next entry": {
        "en": "the recurrence of {name} leads from the closed form of one entry to that of the next",
        "zh": "{name} 的递推式由某一项的闭式得到下一项的闭式",
    },
    "last digit": {
        "en": "indices are written {forms}: each of the {count} cases is shown",
        "zh": "把指标写成 {forms}：{count} 种情形逐一证明",
    },
    "case": {
        "en": "{case}: the difference has normal form 0 for all sizes",
        "zh": "{case}：差的规范形对所有尺寸均为 0",
    },
    "inputs": {
        "en": "everything is written in terms of the inputs",
        "zh": "全部用输入表示",
    },
    "named value": {
        "en": "the definition of {name} is recognised",
        "zh": "识别出 {name} 的定义",
    },
}


def reason(rule: str, lang: str = "en", **words: str) -> str:
    """One sentence on why a rule may be used.

    >>> reason("no dependence", name="x")
    'the result does not depend on x'
    """
    return phrase(REASONS[rule]["en"], **words) if lang == "en" else REASONS[rule][lang].format(**words)
