"""Titles, columns and conclusions of the experiments."""

from __future__ import annotations

EXPERIMENTS = {
    "Gradient norms of a stack of Transformer blocks": "Transformer 模块堆叠中的梯度范数",
    "depth": "深度",
    "Pre-LN, first block": "Pre-LN，第一个模块",
    "Pre-LN, last block": "Pre-LN，最后一个模块",
    "Post-LN, first block": "Post-LN，第一个模块",
    "Post-LN, last block": "Post-LN，最后一个模块",
    "in the last block the gradient keeps its size under Post-LN and falls with the depth under Pre-LN": (
        "最后一个模块的梯度：Post-LN 下大小保持不变，Pre-LN 下随深度减小"
    ),
    "no difference": "没有差别",
    "Intrinsic dimension, estimated and known": "内在维度：估计值与已知值",
    "dimension": "维度",
    "ambient": "环境维度",
    "estimate": "估计值",
    "the estimator finds the known dimension within 15 %, far below the ambient one": (
        "估计量在 15 % 以内找到已知维度，远低于环境维度"
    ),
    "the estimator misses": "估计量没有找到",
    "Double descent: {} points, random features": "双下降：{} 个样本点，随机特征",
    "features P": "特征数 P",
    "training error": "训练误差",
    "test error": "测试误差",
    "the test error falls, rises to a peak where P is near N = {}, and falls again below its first minimum": (
        "测试误差先下降，在 P 接近 N = {} 处升至峰值，随后再次下降并低于第一个极小值"
    ),
    "no double descent in these numbers": "这些数据中没有双下降",
    "Coverage of a generalisation bound": "泛化界的覆盖率",
    "sample size n": "样本容量 n",
    "coverage": "覆盖率",
    "mean largest gap": "最大差的平均",
    "mean bound": "界的平均",
    "the bound holds at least as often as promised ({}); it is far from tight": (
        "该界成立的频率不低于承诺值（{}），但远不紧"
    ),
    "the bound fails": "该界不成立",
    "Neural tangent kernel: deviation from its limit": "神经切线核：与极限的偏差",
    "width m": "宽度 m",
    "root mean square deviation": "均方根偏差",
    "the kernel tends to its closed form; the deviation falls like m to the power {}": (
        "核趋于其闭式；偏差按 m 的 {} 次幂下降"
    ),
    "no limit in these numbers": "这些数据中没有极限",
    "Softmax saturation over the width of queries and keys": "softmax 饱和程度随查询与键的宽度的变化",
    "norm": "范数",
    "largest weight": "最大权重",
    "norm, scaled": "范数（缩放后）",
    "largest weight, scaled": "最大权重（缩放后）",
    "unscaled scores push softmax to one-hot and its Jacobian to 0; scaled by 1/√d it does not depend on d": (
        "未缩放的分数使 softmax 趋于独热、其雅可比矩阵趋于 0；乘以 1/√d 后与 d 无关"
    ),
    "no saturation": "没有饱和",
    "unscaled: the Jacobian's norm at d = 1024 over that at d = 4": "未缩放：d = 1024 与 d = 4 时雅可比矩阵范数之比",
    "unscaled: mean largest weight at d = 1024": "未缩放：d = 1024 时最大权重的平均",
    "scaled: the norm at d = 1024 over that at d = 4": "缩放后：d = 1024 与 d = 4 时范数之比",
    "every norm, against ½": "全部范数，对照 ½",
    "{} (not seen: {})": "{}（未观察到：{}）",
}
