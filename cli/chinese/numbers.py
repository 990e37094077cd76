"""What the rows of numbers are of, which values are words, and what was expected."""

from __future__ import annotations

RECURRENT = {
    "h̄₀ from J_{} = c·h_{}": "由 J_{} = c·h_{} 得到的 h̄₀",
    "the document's W_hᵀ diag(σ′)": "文中的 W_hᵀ diag(σ′)",
    "the Jacobian diag(σ′) W_h": "雅可比矩阵 diag(σ′) W_h",
    "one is the transpose of the other": "二者互为转置",
    "largest ‖product‖ − σ_max^(t−k) in 40 random tanh networks (γ = 1)": (
        "40 个随机 tanh 网络（γ = 1）中 ‖连乘‖ − σ_max^(t−k) 的最大值"
    ),
    "{} × a rotation, 10 steps, σ(z) = z: the bound is reached": "{} × 旋转，10 步，σ(z) = z：达到该界",
    "γ σ_max = 0.9: norm after 100 steps": "γ σ_max = 0.9：100 步后的范数",
    "{}, σ(z) = z: norm after 2 steps": "{}，σ(z) = z：2 步后的范数",
    "{}: σ_max": "{}：σ_max",
    "{}: σ_max = 3": "{}：σ_max = 3",
    "{}: norm after 5 saturated steps": "{}：饱和 5 步后的范数",
    "the formula against the optimiser's clipping: largest difference": "公式与优化器裁剪结果的最大差",
    "norm after clipping to ½": "裁剪到 ½ 后的范数",
    "the cosine with the gradient: the direction is kept": "与原梯度夹角的余弦：方向不变",
    "100 float32 entries of 1e20, clipped to 1": "100 个等于 1e20 的 float32 分量，裁剪到 1",
    "an entry that is {} is an error": "分量为 {} 时报错",
    "torch's clip_grad_norm_, with its 1e−6: largest difference": "与 torch 的 clip_grad_norm_（含其 1e−6）的最大差",
    "torch's result over the formula's": "torch 的结果与公式结果之比",
}

SEQUENCES = {
    "Σ P(y | x) over all {} sentences": "对全部 {} 个句子求和 Σ P(y | x)",
    "a beam of width V^T finds the best of all sequences": "宽度为 V^T 的束找到全部序列中最优的一个",
    "greedy does not": "贪心则找不到",
    "a beam of width 2 that scores worse than greedy": "得分低于贪心的、宽度为 2 的束",
    "weights for s = (1,2), H = I: dot against scaled": "s = (1,2)，H = I 时的权重：点积与缩放",
    "weights for s = (1,2), H = I: dot against additive": "s = (1,2)，H = I 时的权重：点积与加性",
    "the additive score prefers position 1, the dot score position 2": "加性分数偏向位置 1，点积分数偏向位置 2",
    "parameters of the additive score": "加性分数的参数个数",
    "parameters of the dot scores": "两种点积分数的参数个数",
}

ATTENTION = {
    "Var(qᵀk), mean 0, variance 1, d_k = {}: {} draws, 5 standard errors": (
        "Var(qᵀk)，均值 0，方差 1，d_k = {}：{} 次抽样，5 倍标准误"
    ),
    "Var({}): {} draws, 5 standard errors": "Var({})：{} 次抽样，5 倍标准误",
    "Var(qᵀk), {}: {} draws, 5 standard errors": "Var(qᵀk)，{}：{} 次抽样，5 倍标准误",
    "largest norm − max 2a(1 − a) in 200 random weights": "200 组随机权重中范数 − max 2a(1 − a) 的最大值",
    "the norm at (½, ½), where the bound is reached": "(½, ½) 处的范数，此处达到该界",
    "the norm at largest weight {}": "最大权重为 {} 时的范数",
    "t = {}: spectral norm of the softmax Jacobian": "t = {}：softmax 雅可比矩阵的谱范数",
    "t = {}: gradient at the target": "t = {}：目标处的梯度",
    "q kᵀ of the rows (1,2) and (3,4)": "行 (1,2) 与 (3,4) 的 q kᵀ",
    "qᵀk of the same rows": "同样两行的 qᵀk",
    "shape of {}": "{} 的形状",
    "softmax(QKᵀ/√d_k)V, leading order": "softmax(QKᵀ/√d_k)V 的主阶",
    "everything, with the scaling and the softmax": "全部运算，含缩放与 softmax",
    "four projections": "四个投影",
    "the four projections": "四个投影",
    "scores and mixing": "分数与加权求和",
    "n = 512, d = 512: the part with n² over the projections": "n = 512，d = 512：含 n² 的部分与投影之比",
    "n = 2d = 1024: they are equal": "n = 2d = 1024：二者相等",
    "rows of the masked softmax sum to": "带掩码的 softmax 各行之和",
    "rows of E22 as printed sum to": "E22 原式各行之和",
    "a row with nothing allowed gives an error or zeros, never NaN": "没有允许位置的行：报错或给零，绝不给出 NaN",
    "zeros": "零",
    "no mask: largest |Attention(PX) − P Attention(X)| over all 24 permutations": (
        "无掩码：全部 24 个置换中 |Attention(PX) − P Attention(X)| 的最大值"
    ),
    "causal mask: the same difference": "因果掩码：同样的差",
    "a reads b": "a 读取 b",
    "b reads a": "b 读取 a",
    "the dot product of the inputs themselves": "输入自身的点积",
    "d_k = 1, d = 2: the determinant of W_Q W_Kᵀ (rank ≤ 1)": "d_k = 1，d = 2：W_Q W_Kᵀ 的行列式（秩 ≤ 1）",
    "all projections, any d_k and d_v": "全部投影，任意 d_k 与 d_v",
    "one head, d_k = d_v = d": "单头，d_k = d_v = d",
    "torch's biases, of Q, K, V and the output": "torch 的偏置：Q、K、V 与输出",
    "d_k = d_v = d/h: whatever the number of heads": "d_k = d_v = d/h：与头数无关",
}

TRANSFORMER = {
    "Ē for the tokens (1, 1, 2)": "词元 (1, 1, 2) 的 Ē",
    "PE(1) for d = 4, as printed": "d = 4 时的 PE(1)，文中数值",
    "PE(1) for d = 4, against math.sin and math.cos": "d = 4 时的 PE(1)，对照 math.sin 与 math.cos",
    "d = 5 is refused": "d = 5 被拒绝",
    "least squared distance of positions up to 10000 apart, first pair alone": (
        "相距不超过 10000 的两个位置的最小距离平方（只看第一对分量）"
    ),
    "weights": "权重",
    "d_ff = 4 d": "d_ff = 4 d",
    "with the documented biases": "含文中的偏置",
    "one block": "一个模块",
    "one decoder block with cross-attention": "一个含交叉注意力的解码器模块",
    "encoder and decoder, 6 layers each, without embeddings": "编码器与解码器各 6 层，不计嵌入",
    "Transformer base with a vocabulary of {}": "词表大小为 {} 的 Transformer base",
    "F(x) = −x: the gradient for the cotangent (3, 4)": "F(x) = −x：上游梯度为 (3, 4) 时的梯度",
    "‖J_F‖ = ½ in 10 layers: least ratio of gradient norms in 30 trials": (
        "10 层均有 ‖J_F‖ = ½：30 次试验中梯度范数之比的最小值"
    ),
    "(1,2,3,4), ε = {}: √(v+ε) against σ+ε, first entry": "(1,2,3,4)，ε = {}：√(v+ε) 与 σ+ε，第一个分量",
    "constant row, ε = {}: difference quotient along a direction, against (u − mean u)/ε": (
        "常数行，ε = {}：沿某一方向的差商，对照 (u − mean u)/ε"
    ),
    "LayerNorm of (1,2,3,4)": "(1,2,3,4) 的 LayerNorm",
    "x̄ at (5,5,5,5) for the cotangent e₁": "上游梯度为 e₁ 时 (5,5,5,5) 处的 x̄",
    "{} against {}": "{} 与 {}",
    "LayerNorm: largest derivative across rows": "LayerNorm：跨行导数的最大值",
    "LayerNorm: least derivative within a row": "LayerNorm：行内导数的最小值",
    "BatchNorm: largest derivative across columns": "BatchNorm：跨列导数的最大值",
    "BatchNorm: least derivative within a column": "BatchNorm：列内导数的最小值",
    "{}, first block: gradient norms for depths {}": "{}，第一个模块：深度 {} 的梯度范数",
    "{}, last block: gradient norms for depths {}": "{}，最后一个模块：深度 {} 的梯度范数",
    "Post-LN, last block: the norm grows with the depth to the power": ("Post-LN，最后一个模块：范数随深度变化的幂次"),
    "Pre-LN, last block: the power": "Pre-LN，最后一个模块：幂次",
    "depth {}, last block: Post-LN over Pre-LN": "深度 {}，最后一个模块：Post-LN 与 Pre-LN 之比",
    "Ē of the tied model against Ē + Ūᵀ of the untied one": "共享模型的 Ē 与不共享模型的 Ē + Ūᵀ",
    "a row that no token reads has a gradient too": "没有词元读取的行也有梯度",
    "encoder-only": "仅编码器",
    "decoder-only": "仅解码器",
    "encoder–decoder: a target position sees all source positions": "编码器–解码器：目标位置可见全部源位置",
    "encoder–decoder: cross-attention adds no other target position": ("编码器–解码器：交叉注意力不引入其他目标位置"),
}

LOSSES = {
    "log_softmax at (.1, .9), cotangent (1, 1)": "log_softmax 在 (.1, .9) 处，上游梯度 (1, 1)",
    "mean loss of the two rows that count": "计入平均的两行的平均损失",
    "gradient of the ignored row": "被忽略行的梯度",
    "the loss without smoothing": "不作平滑时的损失",
    "total probability of the {} sequences of length {}": "{} 个长度为 {} 的序列的总概率",
    "(1/B) Σ_b Σ_t −log P, by hand": "(1/B) Σ_b Σ_t −log P，手算",
    "the mean over the {} words instead": "改为对 {} 个词求平均",
    "other logits in the padding: the loss": "改变填充位置的 logits：损失",
    "the gradient in the padding": "填充位置的梯度",
    "weighted by the number of words": "按词数加权",
    "weighted equally": "等权重",
    "the two gradients, equal weights against the large batch": "两个梯度：等权重与大批量",
    "a uniform model over 4 words": "4 个词上的均匀模型",
    "the inverse geometric mean of the probabilities": "概率几何平均的倒数",
    "the metric: a uniform model over 4 words": "评测函数：4 个词上的均匀模型",
    "mean 800 overflows float64 and is infinite": "均值 800 使 float64 溢出，结果为无穷",
    "a word of probability zero makes it infinite": "出现概率为零的词时为无穷",
    "change of the last output when only the first of four words changes": ("只改变四个词中第一个时最后一个输出的变化"),
    "the same with attention restricted to the last 3 words": "同上，但注意力限于最后 3 个词",
    "H(w) − cross-entropy of an untrained model, against I": "未训练模型的 H(w) − 交叉熵，对照 I",
    "the same at the true model: the bound is tight": "真实模型处的同一量：该界取等号",
    "largest H(w) − cross-entropy − I over 200 random models": "200 个随机模型中 H(w) − 交叉熵 − I 的最大值",
    "largest rise of I(X;T) from one layer to the next, 300 chains": "I(X;T) 从一层到下一层的最大升幅，300 条链",
    "largest rise of I(T;Y), 300 chains": "I(T;Y) 的最大升幅，300 条链",
    "objective at β = 2: the bottleneck is T = Y": "β = 2 时的目标：瓶颈为 T = Y",
    "its value, −log 2": "其值 −log 2",
    "the value of T = X, which keeps everything": "T = X（保留一切）的值",
    "last row of attention{}": "注意力矩阵的最后一行{}",
    "gradient of {}": "{} 的梯度",
    "largest distance from central differences, ε = 1e-5": "与中心差分的最大差，ε = 1e-5",
}

OPTIMISATION = {
    "|change| at g = 1e−8, step 1, rate 1e−3, ε = 1e−8": "g = 1e−8、第 1 步、学习率 1e−3、ε = 1e−8 时的 |变化量|",
    "three steps, against a loop written by hand": "三步，对照手写的循环",
    "v̂_{} from {} with g² = 1": "g² = 1 时由 {1} 得到的 v̂_{0}",
    "v̂_{} from {}, the document's form": "由 {1}（文中写法）得到的 v̂_{0}",
    "the document's steps are longer by this factor at t = 10": "t = 10 时文中写法的步长偏大的倍数",
    "50 steps of the generated optimiser, by a loop": "生成的优化器走 50 步，对照循环",
    "the same by torch.optim.Adam": "同上，对照 torch.optim.Adam",
    "{} of {} runs against (1 − βᵗ) E": "{}（{} 次运行）对照 (1 − βᵗ) E",
    "the interval's half-width, relative, is under 5 % ({})": "置信区间的相对半宽小于 5 %（{}）",
    "the evidence is the normaliser of Beta(a + heads, b + tails)": "证据是 Beta(a + 正面数, b + 反面数) 的归一化常数",
    "posterior mean of Beta(2, 3) after 7 heads and 4 tails": "Beta(2, 3) 在 7 正 4 反之后的后验均值",
    "the trained point from θ₀ = {}": "从 θ₀ = {} 出发训练到的点",
    "the trained point from θ₀ = {}: the start leaves no trace": "从 θ₀ = {} 出发训练到的点：初值不留痕迹",
    "the posterior mean with prior mean −10, against that with +10": "先验均值为 −10 与 +10 时的后验均值",
    "the posterior's variance, against that of a point": "后验的方差，对照单点的方差",
    "AdamW": "AdamW",
    "Adam with L2 added to the gradient": "把 L2 加入梯度的 Adam",
    "AdamW against Adam with L2": "AdamW 与带 L2 的 Adam",
    "gradient descent with the penalty: the same as decay": "带惩罚项的梯度下降：与衰减相同",
    "largest asymmetry of the Hessian of the 24 parameters": "24 个参数的海森矩阵的最大不对称量",
    "its smallest eigenvalue: the loss is not convex in the parameters": "其最小特征值：损失对参数非凸",
    "its largest eigenvalue": "其最大特征值",
    "smallest eigenvalue of diag(p) − ppᵀ, 100 random p": "diag(p) − ppᵀ 的最小特征值，100 个随机 p",
}

INFERENCE = {
    "probability of all texts that end or reach the limit": "全部结束或达到上限的文本的总概率",
    "largest deviation of a frequency, in standard errors, {} texts": "频率的最大偏差（以标准误计），{} 段文本",
    "longest text at a limit of 2 words": "上限为 2 个词时最长的文本",
    "no text goes on after the end token": "没有文本在结束符之后继续",
    "the same seed gives the same texts": "同一种子给出同样的文本",
    "40 random models: outputs that differ from a loop": "40 个随机模型：与循环结果不同的输出数",
    "a tie of words 1 and 2": "词 1 与词 2 并列",
    "kept of {} at {}": "{} 在 {} 时保留的词数",
    "the same where the sum must exceed .7, as the document says": "同上，但按文中要求之和超过 .7",
    "four equal words at .5: the lowest two": "四个等概率的词，p = .5：编号最小的两个",
    "beams of width V^T whose score differs from brute force, 25 models": (
        "宽度为 V^T 的束与穷举得分不同的个数，25 个模型"
    ),
    "models in which a beam of width 1 misses the best text": "宽度为 1 的束错过最优文本的模型数",
    "log-probability from width 2 less that from width 1, model {}: worse": (
        "模型 {}：宽度 2 的对数概率减去宽度 1 的：更差"
    ),
    "six positions with a growing cache, RoPE, against all at once": "六个位置、逐步增长的缓存、RoPE，对照一次性计算",
    "the last position when the newest word is numbered 0": "把最新的词编号为 0 时的最后位置",
    "T = {}, no cache": "T = {}，无缓存",
    "T = {}, with a cache": "T = {}，有缓存",
    "growth from T = 64 to 128: about 2³ and 2²": "T 从 64 到 128 的增长倍数：约 2³ 与 2²",
    "codes that differ from the formula, 1 to 8 bits": "与公式不同的编码数，1 至 8 位",
    "constant tensors come back exactly": "常数张量精确还原",
    "largest error on the grid, 1 to 8 bits": "格点上的最大误差，1 至 8 位",
    "largest error over its bound, four random tensors": "最大误差与其界之比，四个随机张量",
    "(0, .5, 3) at 2 bits: the error is the bound": "(0, .5, 3)，2 位：误差等于界",
    "“yes” against “no”": "“yes” 对 “no”",
    "a copy of ten words": "十个词的原样复制",
    "20 random corpora, by the definition": "20 个随机语料，按定义",
    "the same by sacrebleu (its scale is 100)": "同上，用 sacrebleu（其满分为 100）",
    "rank of the joint tensor, unfolded to 9 × 9": "联合张量展开为 9 × 9 后的秩",
    "rank of the product of its conditionals": "条件概率之积的秩",
    "the product of conditionals is the joint tensor, in fractions": "条件概率之积等于联合张量（分数运算）",
}

VIEWS = {
    "the gradient has no part along x": "梯度沿 x 方向没有分量",
    "a zero vector is refused": "零向量被拒绝",
    "a division by zero": "除以零",
    "estimate at dimension {} in 30": "30 维空间中 {} 维数据的估计值",
    "least objective of 1000 random weights less that of softmax": "1000 组随机权重的最小目标值减去 softmax 的目标值",
    "the objective at softmax is −ε Σ log Z": "softmax 处的目标值为 −ε Σ log Z",
    "column sums of softmax, where a transport plan needs 1 and 1": "softmax 的列和，而传输方案要求 1 和 1",
    "the plan with both marginals fixed, rows scaled to 1, against softmax": (
        "两个边缘都固定的方案（各行归一），对照 softmax"
    ),
    "slope of log deviation over log width": "对数偏差关于对数宽度的斜率",
    "deviation at width {}, relative to the limit": "宽度 {} 处相对于极限的偏差",
    "|mean − limit| at width {}, in standard errors: no bias": "宽度 {} 处的 |均值 − 极限|（以标准误计）：无偏",
    "at t = {}, integrated, against the formula with I − exp(−ηΘt)": (
        "t = {} 时数值积分的结果，对照含 I − exp(−ηΘt) 的公式"
    ),
    "at t = {} against the document's form": "t = {} 时对照文中的式子",
    "as t → ∞ the document's form": "t → ∞ 时即文中的式子",
    "smallest eigenvalue of the kernel": "核的最小特征值",
    "first descent: test error at P = {} over that at the first minimum, P = {}": (
        "第一次下降：P = {} 处的测试误差与第一个极小点 P = {} 处之比"
    ),
    "the peak, at P = {}, over the first minimum": "峰值（P = {}）与第一个极小值之比",
    "nearness of the peak to N = {}: min(P, N)/max(P, N)": "峰值与 N = {} 的接近程度：min(P, N)/max(P, N)",
    "second descent: the peak over the error at P = {}": "第二次下降：峰值与 P = {} 处误差之比",
    "the first minimum over the error at P = {}": "第一个极小值与 P = {} 处误差之比",
    "E ‖Σ σ_i x_i‖² over all signs, against Σ ‖x_i‖²": "对全部符号的 E ‖Σ σ_i x_i‖²，对照 Σ ‖x_i‖²",
    "the complexity, enumerated, against B √(Σ ‖x_i‖²)/n": "枚举得到的复杂度，对照 B √(Σ ‖x_i‖²)/n",
    "the supremum for one sign vector, by search over directions": "某一符号向量的上确界，按方向搜索",
    "E sup(L − L̂) over all samples of {} among {} points, in fractions, against 2 E R̂": (
        "{1} 个点中全部容量 {0} 的样本上的 E sup(L − L̂)（分数精确），对照 2 E R̂"
    ),
    "largest change of sup(L − L̂) by another third of the sample, against {}": (
        "换掉样本的三分之一时 sup(L − L̂) 的最大变化，对照 {}"
    ),
    "share of {} samples of {} in which the bound holds for all thresholds": (
        "{} 组容量为 {} 的样本中，该界对所有阈值成立的比例"
    ),
    "mean largest gap L − L̂ at {}, against the mean bound": "容量 {} 时最大差 L − L̂ 的平均，对照界的平均",
    "the bound at {} points over that at {}: falls like 1/√n": "{} 个点的界与 {} 个点的界之比：按 1/√n 下降",
    "networks of width 2, 8, 32 over the supremum of width 1": "宽度 2、8、32 的网络超出宽度 1 的上确界的量",
    "share of that supremum which width 32 reaches: its best unit split into equal parts": (
        "宽度 32 达到该上确界的比例：把最优单元等分"
    ),
    "parameters at width 1 and 32, with the same complexity": "宽度 1 与 32 的参数个数，复杂度相同",
    "squared overlaps (.6, −.6), normalised": "重叠 (.6, −.6) 的平方，归一化后",
    "softmax of the same overlaps": "同样重叠的 softmax",
    "distance of the returned mixture from both keys: nothing collapses": "返回的混合与两个键的距离：没有坍缩",
    "h after 100 steps of h + 1 from 0": "从 0 出发，h + 1 迭代 100 步后的 h",
    "the contraction's fixed point: F(h) − h": "压缩映射的不动点：F(h) − h",
    "the same from another start": "从另一初值出发，结果相同",
    "largest error over Banach's bound {}": "最大误差与 Banach 界 {} 之比",
    "P − AᵀPA = I in fractions": "P − AᵀPA = I（分数运算）",
    "P is positive definite": "P 正定",
    "V falls in 30 steps from (3, −2)": "从 (3, −2) 出发的 30 步中 V 递减",
    "length after 30 steps": "30 步后的长度",
    "F not continuous: V = |x| falls, yet x stays above 1 from 3": ("F 不连续：V = |x| 递减，但从 3 出发 x 始终大于 1"),
    "V not positive definite: |x| after 20 steps of 2x from 1, V = −x² falling": (
        "V 不正定：从 1 出发按 2x 迭代 20 步后的 |x|，而 V = −x² 递减"
    ),
    "spectral radius of each factor": "各因子的谱半径",
    "spectral radius of the product": "乘积的谱半径",
    "its bound from the largest singular values, 2 · 2": "由最大奇异值得到的界 2 · 2",
    "the gradient's growth over ten pairs of layers": "经过十对层后梯度的增长倍数",
    "the truncated factorisation sums to 1": "截断的分解之和为 1",
    "P(w₁ | do(w₂ = 1)) is P(w₁)": "P(w₁ | do(w₂ = 1)) 等于 P(w₁)",
    "max |W̄_V − W̄_O|, both start as the identity": "max |W̄_V − W̄_O|，二者初值均为单位矩阵",
    "max |W̄_V − W̄_O|, W_O starts as {}": "max |W̄_V − W̄_O|，W_O 的初值为 {}",
    "loss before the step": "更新前的损失",
    "loss after it": "更新后的损失",
    "larger attention weight before the step": "更新前较大的注意力权重",
    "larger attention weight after it": "更新后较大的注意力权重",
    "loss and weight both fall": "损失与权重同时下降",
    "the output": "输出",
    "without the word of weight {}": "去掉权重为 {} 的词",
}

NUMBERS = {
    **RECURRENT,
    **SEQUENCES,
    **ATTENTION,
    **TRANSFORMER,
    **LOSSES,
    **OPTIMISATION,
    **INFERENCE,
    **VIEWS,
}
