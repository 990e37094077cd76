"""The assumptions of the entries, and the words inside the formulas of their statements."""

from __future__ import annotations

ASSUMPTIONS = {
    "|σ′| ≤ γ everywhere": "处处有 |σ′| ≤ γ",
    "the norm is finite: an inf or NaN entry is an error": "范数有限：出现 inf 或 NaN 分量即报错",
    "every prefix has a positive probability": "每个前缀的概率都为正",
    "the components of q are i.i.d., those of k too": "q 的各分量独立同分布，k 的各分量亦然",
    "q and k are independent": "q 与 k 相互独立",
    "mean 0, variance 1": "均值 0，方差 1",
    "the components of q and k are independent, with mean 0 and variance 1": "q、k 的各分量相互独立，均值 0，方差 1",
    "logits (t, 0, 0), target 1, t growing": "logits 为 (t, 0, 0)，目标为 1，t 逐渐增大",
    "every row has an allowed place": "每行至少有一个允许的位置",
    "no positional encoding": "没有位置编码",
    "no mask": "没有掩码",
    "no biases": "没有偏置",
    "d is even; an odd d is an error": "d 为偶数；d 为奇数时报错",
    "one block without cross-attention": "一个不含交叉注意力的模块",
    "embeddings and biases not counted": "不计嵌入与偏置",
    "at initialisation": "初始化时刻",
    "Xavier weights, Gaussian inputs, a random linear loss, 4 seeds": (
        "Xavier 初始化的权重，高斯输入，随机线性损失，4 个种子"
    ),
    "micro-batches are weighted by what the loss divides by (words, or sequences)": (
        "各小批按损失的除数（词数或序列数）加权"
    ),
    "one layer; with L layers a window of n − 1 reaches L(n − 1) words back": (
        "单层；若有 L 层，窗口 n − 1 可回溯 L(n − 1) 个词"
    ),
    "g_t has the same mean and mean square at every step": "各步 g_t 的均值与均方相同",
    "plain gradient descent": "普通梯度下降",
    "max > min; for a constant tensor, which the document leaves undefined, every code is 0": (
        "max > min；文中未定义的常数张量，其编码全取 0"
    ),
    "neither vector is zero": "两个向量都不为零",
    "each row of α sums to 1, nothing is asked of the columns": "α 的每行之和为 1，对列不作要求",
    "gradient flow on ½ squared loss": "对 ½ 平方损失作梯度流",
    "the kernel does not change (exact for models linear in Θ)": "核保持不变（对 Θ 线性的模型精确成立）",
    "linear functions with ‖w‖ ≤ B": "满足 ‖w‖ ≤ B 的线性函数",
    "a loss in [0, 1]": "损失取值于 [0, 1]",
    "the complexity is that of the class of losses": "复杂度指损失函数类的复杂度",
    "an independent sample; the bound holds for all f at once with probability at least 1 − δ": (
        "独立样本；以至少 1 − δ 的概率，该界对所有 f 同时成立"
    ),
    "V and F are continuous": "V 与 F 连续",
    "V is positive definite about H*": "V 关于 H* 正定",
    "V is radially unbounded": "V 径向无界",
}

# the words in \text{…}
WORDS = {
    "in numerator layout": "（分子布局）",
    "the product explodes": "连乘爆炸",
    "is necessary, not sufficient": "是必要条件而非充分条件",
    "otherwise": "其他情形",
    ", equal for a beam of width": "，等号成立于束宽",
    "dot, scaled and additive scores are equivalent": "点积、缩放、加性三种分数等价",
    "have": "的参数个数依次为",
    "parameters": "",
    "the softmax Jacobian vanishes,": "softmax 的雅可比矩阵趋于零，",
    "does not": "不趋于零",
    "in total:": "（总计）：",
    "is the bottleneck": "是瓶颈",
    "the part with": "含",
    "is the larger one only for": "的部分仅在以下情形更大：",
    "if": "，若",
    "else": "否则为",
    "wavelengths": "波长",
    "about": "约占参数的",
    "of the parameters": "",
    "avoids vanishing gradients": "可避免梯度消失",
    "in each of": "对全部",
    "layers": "层成立",
    "Pre-LN trains more stably": "Pre-LN 训练更稳定",
    "encoder-only, decoder-only, encoder--decoder": "仅编码器、仅解码器、编码器–解码器",
    "“training maximises": "“训练在最大化",
    "“in early layers both rise”": "“前几层二者都上升”",
    "“training computes": "“训练在计算",
    ", the prior is the initialisation”": "，先验即初始化”",
    "is a point;": "是一个点；",
    "append, repeat until the end token or the limit": "追加并重复，直到结束符或长度上限",
    "per step": "（每步）",
    "for the sequence": "（整段）",
    "test error falls, rises at": "测试误差先下降，在",
    ", and falls again": "处上升，之后再次下降",
    "“the complexity depends on depth, width and number of heads”": "“复杂度取决于深度、宽度与头数”",
    "is the same at every width": "与宽度无关",
    "“inference looks for a fixed point": "“推理在寻找不动点",
    "has none for": "没有不动点，只要",
    "a contraction has exactly one": "压缩映射恰有一个不动点",
    "global stability": "全局稳定",
    "“explosion depends on the spectral radius”": "“爆炸取决于谱半径”",
    "in the example": "（在该例中）",
    "“a large weight": "“权重",
    "is a large influence”": "大即影响大”",
    "when word": "，其中词",
    "is scaled by": "乘以",
}

STATEMENTS = {**ASSUMPTIONS, **WORDS}
