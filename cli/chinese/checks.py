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
    "equal {}, {} ({})": "{}，{}相等（{}）",
    "exactly, in fractions": "以分数精确比较",
    "to 40 digits": "比较到 40 位数字",
    "averaged over all {} outcomes": "对全部 {} 种结果取平均后",
    "at random points": "在随机点上",
    "step by step": "逐步检验",
    "by the rule alone: there are too many outcomes to average over": "仅凭规则：结果种数太多，无法逐一平均",
    "by the rule alone: a sum of normal entries is normal": "仅凭规则：正态元素之和仍为正态",
    "not checked: it holds if {}": "未检验：成立的条件是 {}",
    # identities
    "the two sides differ at {}: {} against {}": "两边在 {} 处不同：{} 与 {}",
    "the two sides differ: {} against {}": "两边不同：{} 与 {}",
    "for {}: {}": "取 {}：{}",
    "{} is {}, {} gives {}": "{}为 {}，{}给出 {}",
    "{} at {}": "{}在 {} 处",
    "the left side": "左边",
    "the right side": "右边",
    "{}, and at {} more": "{}，另有 {} 个随机点上亦然",
    # claims
    "the difference from the derived {} has the normal form 0, for all sizes": (
        "与推导出的{}之差，其规范形对所有尺寸均为 0"
    ),
    "{}, apart from kinks": "{}（不可导点除外）",
    "{} with {}": "{}，其中 {}",
    "{} by {}": "对 {1} 的{0}",
    "the {}": "{}",
    "equal at {} random points modulo {}, with functions as unknowns": "在 {} 个随机点上模 {} 相等（函数视为未知元）",
    "a formula that is wrong at their sizes would pass with a chance below {}": (
        "在这些尺寸下错误的公式蒙混过关的概率低于 {}"
    ),
    "to 40 digits at {} more, on both sides of every threshold": "另在 {} 个点上（每个阈值两侧）40 位数字相等",
    "equal to 40 digits at {} points, {}": "在 {} 个点（{}）上 40 位数字相等",
    "small and large numbers, several sizes, both sides of every threshold": "大小数值、多种尺寸、每个阈值两侧",
    "not reached: {}": "未取到：{}",
    "sizes such as {}": "尺寸如 {}",
    "not proved": "未证明",
    "{} is not the {}: their values differ at the point that is shown": "{}不是{}：二者在所示的点取值不同",
    "the {} has the shape {} in {} layout": "{0}在{2}布局下的形状为 {1}",
    "{} has the shape {}": "{}的形状为 {}",
    "your formula": "所给公式",
    "numerator": "分子",
    "denominator": "分母",
    "the claim": "该式",
    "gradient": "梯度",
    "Jacobian": "雅可比矩阵",
    "Hessian": "海森矩阵",
    "right is: {}": "正确的是：{}",
    "proved": "已证明",
    "agrees": "吻合",
    "refuted": "被否定",
    "undecided": "未定",
    "could not be computed": "无法计算",
    "{}: {}": "{}：{}",
    "{} of {}": "{1} 的{0}",
    "expectation": "期望",
    "variance": "方差",
    "the derivative of {} by {} is {}": "{} 对 {} 的导数为 {}",
}
