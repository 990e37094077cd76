"""How steps were checked, how identities were proved and claims were judged."""

from __future__ import annotations

CHECKS = {
    # steps
    "by definition": "按定义",
    "agrees with differences of the forward to 14 digits ({})": "与前向方程的差分吻合到 14 位（{}）",
    "equal modulo {} at random points ({})": "在随机点上模 {} 相等（{}）",
    "equal to 40 digits at random points ({})": "在随机点上 40 位数字相等（{}）",
    "no sizes": "不含尺寸",
    "derived in {} steps, each checked": "推导共 {} 步，每步均经检验",
    "derived: {}": "推得：{}",
    "{}; expected {}": "{}；应为 {}",
    # moments
    "equal exactly, in fractions, averaged over all {} outcomes ({})": (
        "以分数精确比较，对全部 {} 种结果取平均后相等（{}）"
    ),
    "equal exactly, in fractions, at random points ({})": "以分数精确比较，在随机点上相等（{}）",
    "equal to 40 digits, averaged over all {} outcomes ({})": "对全部 {} 种结果取平均后 40 位数字相等（{}）",
    "equal to 40 digits, at random points ({})": "在随机点上 40 位数字相等（{}）",
    "step by step": "逐步检验",
    "by the rule alone: there are too many outcomes to average over": "仅凭规则：结果种数太多，无法逐一平均",
    "by the rule alone: a sum of normal entries is normal": "仅凭规则：正态元素之和仍为正态",
    "not checked: it holds if {}": "未检验：成立的条件是 {}",
    # identities
    "the two sides differ at {}: {} against {}": "两边在 {} 处不同：{} 与 {}",
    "the two sides differ: {} against {}": "两边不同：{} 与 {}",
    "for {}: the left side at {} is {}, the right side gives {}": "取 {}：左边在 {} 处为 {}，右边给出 {}",
    "for {}: the left side is {}, the right side gives {}": "取 {}：左边为 {}，右边给出 {}",
    "the left side at {} is {}, the right side gives {}": "左边在 {} 处为 {}，右边给出 {}",
    "the left side is {}, the right side gives {}": "左边为 {}，右边给出 {}",
    "{}, and at {} more": "{}，另有 {} 个随机点上亦然",
    # claims
    "the difference from the derived {} by {} has the normal form 0, for all sizes": (
        "与推导出的对 {1} 的{0}之差，其规范形对所有尺寸均为 0"
    ),
    "the difference from the derived {} by {} has the normal form 0, for all sizes, apart from kinks": (
        "与推导出的对 {1} 的{0}之差，除不可导点外，其规范形对所有尺寸均为 0"
    ),
    "equal at {} random points modulo {}, with functions as unknowns": "在 {} 个随机点上模 {} 相等（函数视为未知元）",
    "a formula that is wrong at their sizes would pass with a chance below {}": (
        "在这些尺寸下错误的公式蒙混过关的概率低于 {}"
    ),
    "equal to 40 digits at {} random points, small and large numbers, several sizes": (
        "在 {} 个随机点（大小数值、多种尺寸）上 40 位数字相等"
    ),
    "not proved": "未证明",
    "the claim is not the {} by {}: their values differ at the point that is shown": (
        "该式不是对 {1} 的{0}：二者在所示的点取值不同"
    ),
    "for {}: the {} by {} at {} is {}, {} gives {}": "取 {0}：对 {2} 的{1}在 {3} 处为 {4}，{5}给出 {6}",
    "for {}: the {} by {} is {}, {} gives {}": "取 {0}：对 {2} 的{1}为 {3}，{4}给出 {5}",
    "the {} by {} at {} is {}, {} gives {}": "对 {1} 的{0}在 {2} 处为 {3}，{4}给出 {5}",
    "the {} by {} is {}, {} gives {}": "对 {1} 的{0}为 {2}，{3}给出 {4}",
    "the claim": "该式",
    "gradient": "梯度",
    "Jacobian": "雅可比矩阵",
    "Hessian": "海森矩阵",
    "right is: {}": "正确的是：{}",
    "right is: {} with {}": "正确的是：{}，其中 {}",
    "proved": "已证明",
    "agrees": "吻合",
    "refuted": "被否定",
    "undecided": "未定",
    "could not be computed": "无法计算",
    "proved: {}": "已证明：{}",
    "agrees: {}": "吻合：{}",
    "refuted: {}": "被否定：{}",
    "expectation of {}": "{} 的期望",
    "variance of {}": "{} 的方差",
    "expectation": "期望",
    "variance": "方差",
    "the derivative of {} by {} is {}": "{} 对 {} 的导数为 {}",
}
