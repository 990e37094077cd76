"""What the identities, claims and moments of the entries say."""

from __future__ import annotations

RECURRENT = {
    "two steps: the Jacobian of h₂, transposed, times the gradient at h₂": (
        "两步：h₂ 的雅可比矩阵转置后乘以 h₂ 处的梯度"
    ),
    "the document's form, read as a Jacobian in numerator layout": "文中的写法，按分子布局的雅可比矩阵理解",
    "the Jacobian in numerator layout": "分子布局下的雅可比矩阵",
    "the document's form in denominator layout": "文中的写法，按分母布局理解",
    "numerator layout: the later factor stands on the left": "分子布局：靠后的因子在左边",
    "numerator layout with the factors in rising order": "分子布局，但因子按递增次序排列",
    "denominator layout, the document's: the factors rise from left to right": (
        "分母布局（文中所用）：因子从左到右递增"
    ),
    "with |s_i| ≤ γ the last sum is ≥ 0: ‖diag(s) v‖ ≤ γ‖v‖": "|s_i| ≤ γ 时最后的和 ≥ 0：‖diag(s) v‖ ≤ γ‖v‖",
    "so one step is at most γ‖Wv‖ ≤ γ σ_max ‖v‖, and t − k steps the power": (
        "故一步至多放大为 γ‖Wv‖ ≤ γ σ_max ‖v‖，t − k 步即其 t − k 次幂"
    ),
    "the product of two factors with σ_max = 2 is larger than one factor": "两个 σ_max = 2 的因子之积大于单个因子",
    "y_i g_j = y_j g_i: the direction is kept": "y_i g_j = y_j g_i：方向不变",
    "a clipped gradient has the norm τ": "裁剪后梯度的范数为 τ",
    "one norm over several tensors: together they have the norm τ": "多个张量共用一个范数：合起来范数为 τ",
}

SEQUENCES = {
    "any joint table is the product of its conditionals (three words)": "任何联合分布表都等于其条件分布之积（三个词）",
    "any product of conditionals sums to 1 over all sequences (three words)": (
        "任何条件分布之积对全部序列求和为 1（三个词）"
    ),
    "one sequence is less probable than another just where its log-probability is lower": (
        "一个序列的概率小于另一个，当且仅当其对数概率更小"
    ),
    "the most probable next word is the one with the largest logit": "最可能的下一个词就是 logit 最大的词",
    "dot and scaled scores are the same": "点积分数与缩放分数相同",
    "dot and additive scores are the same": "点积分数与加性分数相同",
    "dot and scaled scores give the same weights": "点积分数与缩放分数给出相同的权重",
    "the scaled score is the dot score divided by √d": "缩放分数等于点积分数除以 √d",
    "the weights sum to 1": "权重之和为 1",
    "the definition": "定义",
    "a square over a sum of squares: α_i ≥ 0": "平方除以平方和：α_i ≥ 0",
    "the sum is the product Hα": "该和即乘积 Hα",
    "concatenation is the sum of two products with the blocks of W_c": "拼接等于与 W_c 两个分块的乘积之和",
}

ATTENTION = {
    "any mean and variance": "任意均值与方差",
    "the absolute row sums of the Jacobian: Gershgorin bounds its eigenvalues by them": (
        "雅可比矩阵的绝对行和：由 Gershgorin 定理，它控制全部特征值"
    ),
    "the entries of the combined gradient add up to 0": "合并后的梯度各分量之和为 0",
    "E_ij = q_i k_jᵀ: a row times a column": "E_ij = q_i k_jᵀ：行乘以列",
    "of the outer product q_iᵀk_j the score is the trace": "分数是外积 q_iᵀk_j 的迹",
    "the printed q_iᵀk_j of two rows, as if each of its entries were the score": (
        "文中两行之间的 q_iᵀk_j，假设其每个元素都是分数"
    ),
    "every row sums to 1": "每行之和为 1",
    "the part with n² is the larger one at n = d = 512 already": "n = d = 512 时含 n² 的部分已经更大",
    "the additive mask is a softmax over the allowed positions": "加性掩码即在允许位置上作 softmax",
    "its rows sum to 1": "其每行之和为 1",
    "S-E22 as printed: softmax over all positions, then zeros": "S-E22 的原式：先对所有位置作 softmax，再置零",
    "the rows of S-E22 as printed sum to 1": "S-E22 原式的每行之和为 1",
    "rows read through p, each position m counted as often as p reads it: once each if p is a permutation": (
        "按 p 读取各行，位置 m 按 p 读到它的次数计：p 为置换时恰各一次"
    ),
    "the scores are permuted in rows and columns": "分数矩阵的行与列同时置换",
    "the scores are a bilinear form of the inputs": "分数是输入的双线性形式",
    "W_Q = W_K makes it symmetric": "W_Q = W_K 时对称",
    "and positive semidefinite": "且半正定",
    "symmetric in general": "一般情形下对称",
    "the same equation as attention.output": "与 attention.output 是同一方程",
    "one position, one column: concatenated heads times W^O is Σ_i head_i W_i^O": (
        "单个位置、单个列：各头拼接后乘 W^O 等于 Σ_i head_i W_i^O"
    ),
    "all positions and columns": "全部位置与列",
}

TRANSFORMER = {
    "the two spellings of the sine": "正弦的两种写法",
    "the two spellings of the cosine": "余弦的两种写法",
    "the squared distance in the first pair, where ω_0 = 1": "第一对分量（ω_0 = 1）上的距离平方",
    "first row": "第一行",
    "second row": "第二行",
    "the ratio of neighbours": "相邻频率之比",
    "the shortest wavelength, i = 0": "最短波长，i = 0",
    "the longest, i = d/2 − 1": "最长波长，i = d/2 − 1",
    "the transpose is the rotation by −θ": "转置即旋转 −θ",
    "RᵀR = I: lengths are kept": "RᵀR = I：长度不变",
    "query at position a, key at position b": "查询在位置 a，键在位置 b",
    "J_y = I + J_F": "J_y = I + J_F",
    "the printed 1 is the identity matrix, no matrix of ones": "式中的 1 是单位矩阵，而非全 1 矩阵",
    "the identity path is there": "恒等路径确实存在",
    "F(x) = −x: the gradient is 0": "F(x) = −x：梯度为 0",
    "as if the identity path always came through": "假设恒等路径总能传过来",
    "(x − μ)/(σ + ε) and (x − μ)/√(σ² + ε) are the same function": "(x − μ)/(σ + ε) 与 (x − μ)/√(σ² + ε) 是同一函数",
    "the mean is 0": "均值为 0",
    "the mean square is v/(v + ε), not 1": "均方为 v/(v + ε)，而不是 1",
    "with γ and β nothing more can be said of the mean": "带 γ 与 β 时，关于均值不能再多说什么",
    "BatchNorm is LayerNorm of the transpose": "BatchNorm 即对转置作 LayerNorm",
}

LOSSES = {
    "for every number c, the maximum too": "对任意数 c 成立，包括最大值",
    "a one-hot target": "独热目标",
    "any target": "任意目标",
    "p − y, which holds only where the target sums to 1": "p − y，仅当目标之和为 1 时成立",
    "a target that sums to 1": "和为 1 的目标",
    "a smoothed target sums to 1": "平滑后的目标之和为 1",
    "the cross-entropy −Σ q log p, since q sums to 1": "交叉熵 −Σ q log p，因为 q 之和为 1",
    "a mixture of two losses, as torch computes it": "两种损失的混合，即 torch 的算法",
    "the step of the induction below": "下面归纳法中的一步",
    "with a_t = P(w_1 … w_t), a_0 = 1: the product of conditionals telescopes, for every length T": (
        "记 a_t = P(w_1 … w_t)，a_0 = 1：对任意长度 T，条件概率的乘积逐项相消"
    ),
    "any conditionals give a distribution": "任意条件分布都给出一个分布",
    "micro-batches of the same size b": "各小批大小同为 b",
    "any sizes n_m, each mean s_m/n_m weighted by n_m": "任意大小 n_m，各均值 s_m/n_m 按 n_m 加权",
    "equal weights for unequal sizes": "大小不等却用等权重",
    "weights n_m/Σn": "权重 n_m/Σn",
    "the weighted geometric mean of the precisions, where all are positive": "各精确率（均为正时）的加权几何平均",
    "the inverse geometric mean of the probabilities": "概率几何平均的倒数",
    "a uniform model over V words": "V 个词上的均匀模型",
    "the last of four outputs depends on the first input, beyond every shorter window": (
        "四个输出中的最后一个依赖第一个输入，超出任何更短的窗口"
    ),
    "with a window of three it does not": "窗口为三时则不依赖",
    "for distributions without zeros": "对没有零概率的分布",
    "Q a softmax": "Q 为 softmax",
    "the gradient of the cross-entropy": "交叉熵的梯度",
    "the gradient of the divergence": "KL 散度的梯度",
    "the gap is the mean divergence KL(P(·|c) ‖ Q(·|c)), which is never negative": (
        "差距是平均散度 KL(P(·|c) ‖ Q(·|c))，恒非负"
    ),
    "I = H(w) − H(w | c)": "I = H(w) − H(w | c)",
    "as if the trained quantity were I itself, which no parameter moves": (
        "假设被训练的量就是 I 本身，而它不随任何参数改变"
    ),
    "what training does move: the lower bound": "训练真正改变的量：下界",
    "I(X;T₁) − I(X;T₂) = I(X;T₁ | T₂), a mean of divergences: never negative": (
        "I(X;T₁) − I(X;T₂) = I(X;T₁ | T₂)，是散度的平均，恒非负"
    ),
    "I(X;T) rises from the first layer to the second, as the document has it": "文中所说：I(X;T) 从第一层到第二层上升",
}

OPTIMISATION = {
    "the step in one line; ε stands outside the root": "一行写出的更新；ε 在根号之外",
    "with v_{t−1}: an exponential mean of all squared gradients q_s": "用 v_{t−1}：全部平方梯度 q_s 的指数平均",
    "v_2 from v_1 with g² = G throughout: the correction 1 − β² undoes its bias": (
        "v_2 由 v_1 得到，始终 g² = G：校正因子 1 − β² 恰好消去偏差"
    ),
    "v_2 from v_0, as the document has it: its own correction 1 − β² does not fit": (
        "v_2 由 v_0 得到（文中写法）：它自己的校正因子 1 − β² 并不相配"
    ),
    "the recursion unrolled; v is the same with g²": "递推展开；v 同理，换成 g²",
    "the geometric sum, for every t": "等比求和，对任意 t",
    "its induction step": "其归纳步",
    "of the first moment; of the second with the mean of g² in place of μ": "一阶矩；把 μ 换成 g² 的均值即得二阶矩",
    "posterior times evidence is the joint distribution, for finitely many parameters": (
        "后验乘以证据等于联合分布（参数取有限多个值）"
    ),
    "prior N(0, 1/λ), data N(θ, 1/τ): the posterior is N(μ, 1/Λ), Λ = λ + nτ, μ = τΣx/Λ": (
        "先验 N(0, 1/λ)，数据 N(θ, 1/τ)：后验为 N(μ, 1/Λ)，Λ = λ + nτ，μ = τΣx/Λ"
    ),
    "a gradient step on ½Σ(θ − x)²: the start is forgotten by a factor 1 − ηn a step": (
        "对 ½Σ(θ − x)² 的一步梯度下降：初值的影响每步乘以 1 − ηn 而衰减"
    ),
    "the point that training reaches, as if it were the posterior mean with the start as prior mean": (
        "训练到达的点，假设它是以初值为先验均值的后验均值"
    ),
    "with the precision λ = exp(r), which is positive; what is left over does not depend on Θ": (
        "取精度 λ = exp(r) > 0；余下的项与 Θ 无关"
    ),
    "for plain gradient descent the penalty is decay of the weights": "对普通梯度下降，惩罚项就是权重衰减",
    "decoupled decay (AdamW), as if it were the first step of Adam with the penalty as its gradient (g = 0)": (
        "解耦衰减（AdamW），假设它就是以惩罚项为梯度的 Adam 第一步（g = 0）"
    ),
    "the quadratic form is the variance of x under p: never negative": "该二次型是 x 在 p 下的方差，恒非负",
}

INFERENCE = {
    "words kept of (.4, .3, .2, .1) at p = .7, with “exceeds” as the document has it: 3": (
        "p = .7 时 (.4, .3, .2, .1) 保留的词数，按文中的“超过”：3"
    ),
    "with “reaches”: a word is kept as long as those before it add up to less than p": (
        "按“达到”：只要之前各词的概率之和小于 p，该词就保留"
    ),
    "attention of the newest position, whole and from the cache": "最新位置的注意力：整体计算与由缓存计算",
    "the first n keys do not depend on the newest position": "前 n 个键与最新位置无关",
    "scores and mixtures of all t + 1 positions at every step: operations for T words without a cache": (
        "每步计算全部 t + 1 个位置的分数与加权和：无缓存时生成 T 个词的运算次数"
    ),
    "of the newest position only: operations with a cache": "只计算最新位置：有缓存时的运算次数",
    "the level of a value on the grid is the level that it came from": "格点上的值量化后回到原来的级别",
    "without rounding the two maps are inverse": "不取整时两个映射互逆",
    "the error is the rounding error u − q times the step; rounding to the nearest level makes |u − q| ≤ ½": (
        "误差等于舍入误差 u − q 乘以步长；取最近的级别保证 |u − q| ≤ ½"
    ),
    "one more place: V choices": "每多一个位置：V 种选择",
    "T places": "T 个位置",
    "any joint tensor without zero prefixes is the product of its own conditionals, exactly": (
        "任何前缀概率非零的联合张量都精确等于其自身条件概率之积"
    ),
    "a decomposition of low rank (here 1), as if the chain rule gave one": (
        "低秩分解（此处秩为 1），假设链式法则会给出这种分解"
    ),
}

VIEWS = {
    "lengths do not matter": "与长度无关",
    "the objective is ε KL(α ‖ softmax(−c/ε)) and a constant, so softmax is the only minimum": (
        "目标函数等于 ε KL(α ‖ softmax(−c/ε)) 加常数，故 softmax 是唯一的最小点"
    ),
    "the Lagrangian of the row sums: its zero is α_ij ∝ exp(−c_ij/ε)": (
        "行和约束的拉格朗日函数：其导数的零点为 α_ij ∝ exp(−c_ij/ε)"
    ),
    "at any inverse temperature": "任意逆温度",
    "β = 1 and energies −o": "β = 1，能量为 −o",
    "F = U − S/β with U = Σ P E and S = −Σ P log P": "F = U − S/β，其中 U = Σ P E，S = −Σ P log P",
    "the energies' own probabilities": "各能级自身的概率",
    "the inner product of the gradients in closed form": "梯度内积的闭式",
    "the gradient by W": "对 W 的梯度",
    "the gradient by a": "对 a 的梯度",
    "the residual shrinks by exp(−η k t) along each eigenvector of the kernel": (
        "残差沿核的每个特征向量按 exp(−η k t) 收缩"
    ),
    "with the factor I − exp(−ηΘt) the flow solves df/dt = −ηΘ(f − y), here in the eigenbasis of Θ": (
        "带因子 I − exp(−ηΘt) 时满足 df/dt = −ηΘ(f − y)，此处在 Θ 的特征基下"
    ),
    "the document's form, constant in t, put into the same equation at t = 0": (
        "文中的式子与 t 无关，在 t = 0 处代入同一方程"
    ),
    "E ‖Σ σ_i x_i‖² = Σ ‖x_i‖² for random signs; Jensen's inequality gives the bound": (
        "对随机符号有 E ‖Σ σ_i x_i‖² = Σ ‖x_i‖²；由 Jensen 不等式得到该界"
    ),
    "a network is Σ_r a_r‖w_r‖ times a unit with ‖w‖ = 1: no width exceeds B times the best single unit": (
        "网络等于 Σ_r a_r‖w_r‖ 乘以 ‖w‖ = 1 的单元：任何宽度都不超过最优单个单元的 B 倍"
    ),
    "one unit is h equal ones with 1/h of its weight: every width reaches what a single unit reaches": (
        "一个单元等于权重各为其 1/h 的 h 个相同单元：任何宽度都能达到单个单元所达到的值"
    ),
    "a superposition is normalised by its length, not by softmax": "叠加态按长度归一化，而不是用 softmax",
    "squared overlaps, as if they were the attention weights": "重叠的平方，假设它们就是注意力权重",
    "the recurrence after two layers is the composition of the two maps": "两层之后的递推等于两个映射的复合",
    "F(h) − h, as if it could be 0": "F(h) − h，假设它可以为 0",
    "F(h) − h is b everywhere": "F(h) − h 处处等于 b",
    "linear F and V(h) = hᵀPh: V falls by hᵀQh where Q = P − AᵀPA (the discrete Lyapunov equation)": (
        "F 线性且 V(h) = hᵀPh：V 减少 hᵀQh，其中 Q = P − AᵀPA（离散李雅普诺夫方程）"
    ),
    "V(h) = −‖h‖² falls along F(h) = 2h, which is unstable: V must be positive definite": (
        "V(h) = −‖h‖² 沿 F(h) = 2h 递减，而该系统不稳定：V 必须正定"
    ),
    "descending: the last layer's Jacobian first": "递减次序：最后一层的雅可比矩阵在最前",
    "the factors in the document's order k = l … L − 1": "因子按文中的次序 k = l … L − 1",
    "both factors are nilpotent: spectral radius 0": "两个因子都幂零：谱半径为 0",
    "their product has the eigenvalue 4": "二者之积有特征值 4",
    "the trace of the product, as if factors of radius 0 could only give radius 0": (
        "乘积的迹，假设谱半径为 0 的因子只能给出谱半径 0"
    ),
    "summing over a later word leaves the factors of the earlier ones": "对靠后的词求和，剩下靠前各词的因子",
    "the first word's distribution under do(w_2 = v) is the one without it": (
        "在 do(w_2 = v) 下第一个词的分布与未干预时相同"
    ),
    "conditioning on w_2 = v instead does change the past": "若改为以 w_2 = v 为条件，则过去会改变",
    "the gradient of W_O, as if it were that of W_V": "W_O 的梯度，假设它就是 W_V 的梯度",
    "the influence of a word on the output u·z, as if it were its attention weight": (
        "一个词对输出 u·z 的影响，假设它就是注意力权重"
    ),
    "the weight times the component of the value along u": "权重乘以值向量在 u 方向的分量",
}

FACTS = {
    **RECURRENT,
    **SEQUENCES,
    **ATTENTION,
    **TRANSFORMER,
    **LOSSES,
    **OPTIMISATION,
    **INFERENCE,
    **VIEWS,
}
