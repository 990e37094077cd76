"""Scaled dot-product attention (sources N, S, C15). Vectors are rows: q_i, k_j and x_i are rows of Q, K and X."""

from gradproof.symbolic.catalogue.entry import Entry, Identity, Moment, add

PROJECTIONS = "Q = X @ W_Q; K = X @ W_K; V = X @ W_V; "
SCALED_SCORES = "S = Q @ K.T / sqrt(d_k); "
WEIGHTS = SCALED_SCORES + "A = softmax(S); "
MASKED_WEIGHTS = SCALED_SCORES + "A = softmax(where(M == 1, S, -inf)); "
OUTPUT = "O = A @ V"
BLOCK = PROJECTIONS + WEIGHTS + "Z = A @ V; R = X + Z @ W_O"
MASKED_BLOCK = PROJECTIONS + MASKED_WEIGHTS + "Z = A @ V; R = X + Z @ W_O"
CROSS = "Q = Y @ W_Q; K = X @ W_K; V = X @ W_V; " + WEIGHTS + OUTPUT
PROJECTION_SHAPES = {"X": "n,d", "W_Q": "d,d_k", "W_K": "d,d_k", "W_V": "d,d_v"}
BLOCK_SHAPES = {**PROJECTION_SHAPES, "W_O": "d_v,d"}
BLOCK_PARAMETERS = ("W_O", "W_Q", "W_K", "W_V")
QUERY_KEY = {"Q": "n,d_k", "K": "n,d_k"}
ATTENTION_SHAPES = {**QUERY_KEY, "V": "n,d_v"}
SCORE = "sum[l](q[l]*k[l])"
CAUSAL = "T[i,j] = where(j <= i, S[i,j], -inf); A = softmax(T); "
CAUSAL_WEIGHTS = SCALED_SCORES + CAUSAL
# rows permuted by p: B stands for W_Q W_Kᵀ/√d_k
PERMUTED = "Y[i,k] = X[p[i],k]; S = Y @ B @ Y.T; F[i,k] = sum[j](exp(S[i,j]) * Y[j,k])"
COUNTED = "c[m] = sum[j](delta(p[j], m)) * ones(n)[m]; S = X @ B @ X.T; F[i,k] = sum[m](c[m] * exp(S[p[i],m]) * X[m,k])"

add(
    Entry(
        "variance.dot_product",
        "The variance of a dot product",
        "点积的方差",
        "statistic",
        "N, S-E2",
        "proved under assumptions",
        r"\operatorname{Var}(q^\top k) = d_k",
        moments=(
            Moment(
                "variance",
                SCORE,
                {"q": "d_k:iid=mu_q,sigma_q**2", "k": "d_k:iid=mu_k,sigma_k**2"},
                "d_k*(sigma_q**2*sigma_k**2 + sigma_q**2*mu_k**2 + sigma_k**2*mu_q**2)",
                "any mean and variance",
            ),
            Moment("variance", SCORE, {"q": "d_k:iid=0,1", "k": "d_k:iid=0,1"}, "d_k", "mean 0, variance 1"),
        ),
        evidence="gradproof.models.evidence.attention:dot_product_variance",
        assumptions=("the components of q are i.i.d., those of k too", "q and k are independent", "mean 0, variance 1"),
        note="With other means and variances it is d_k(σ_q²σ_k² + σ_q²μ_k² + σ_k²μ_q²).",
        note_zh="一般情形为 d_k(σ_q²σ_k² + σ_q²μ_k² + σ_k²μ_q²)。",
    )
)

add(
    Entry(
        "variance.scaled_dot_product",
        "The variance of a scaled dot product",
        "缩放点积的方差",
        "statistic",
        "N, S-E2",
        "proved under assumptions",
        r"\operatorname{Var}(q^\top k / \sqrt{d_k}) = 1",
        moments=(
            Moment(
                "variance", f"{SCORE}/sqrt(d_k)", {"q": "d_k:iid=0,1", "k": "d_k:iid=0,1"}, "1", "mean 0, variance 1"
            ),
        ),
        evidence="gradproof.models.evidence.attention:scaled_variance",
        assumptions=("the components of q and k are independent, with mean 0 and variance 1",),
    )
)

add(
    Entry(
        "attention.qkv",
        "Queries, keys and values",
        "查询、键与值的投影",
        "gradient",
        "N, S",
        "proved",
        r"Q = XW_Q,\; K = XW_K,\; V = XW_V",
        PROJECTIONS + "L = sum(G_Q*Q) + sum(G_K*K) + sum(G_V*V)",
        {**PROJECTION_SHAPES, "G_Q": "n,d_k", "G_K": "n,d_k", "G_V": "n,d_v"},
        ("W_Q", "W_K", "W_V", "X"),
        shown=("W_Q", "W_K", "W_V", "X"),
        note="G_Q, G_K and G_V are the gradients that arrive at Q, K and V. Vectors are rows: S writes W_Q h_i for a"
        " column in one place and z W for a row in another; rows are used throughout here.",
        note_zh="G_Q、G_K、G_V 是传到 Q、K、V 的梯度。此处统一用行向量；综述中混用了列向量 W_Q h_i 与行向量 zW。",
    )
)

add(
    Entry(
        "attention.scores",
        "Attention scores",
        "注意力分数矩阵",
        "gradient",
        "N, S",
        "corrected",
        r"E = QK^\top,\quad E_{ij} = q_i^\top k_j",
        "E = Q @ K.T",
        QUERY_KEY,
        ("Q", "K"),
        "E_bar",
        ("Q", "K"),
        identities=(
            Identity("Q @ K.T", "E[i,j] = sum[l](Q[i,l]*K[j,l])", QUERY_KEY, "E_ij = q_i k_jᵀ: a row times a column"),
            Identity(
                "tr(outer(q, k))",
                "q @ k",
                {"q": "d_k", "k": "d_k"},
                "of the outer product q_iᵀk_j the score is the trace",
            ),
            Identity(
                "outer(q, k)",
                "(q @ k)*ones(d_k, d_k)",
                {"q": "d_k", "k": "d_k"},
                "the printed q_iᵀk_j of two rows, as if each of its entries were the score",
                "refuted",
            ),
        ),
        evidence="gradproof.models.evidence.attention:outer_product",
        right=r"E = QK^\top,\quad E_{ij} = q_i k_j^\top",
        note="q_i and k_j are rows of Q and K, so the printed q_iᵀk_j would be a d_k × d_k outer product; the score"
        " is q_i k_jᵀ.",
        note_zh="q_i、k_j 是 Q、K 的行，文中的 q_iᵀk_j 是 d_k × d_k 的外积；分数应为 q_i k_jᵀ。",
    )
)

add(
    Entry(
        "attention.row_softmax",
        "Attention weights, row by row",
        "按行归一化的注意力权重",
        "gradient",
        "N, S",
        "proved",
        r"A = \operatorname{softmax}\bigl(QK^\top/\sqrt{d_k}\bigr)",
        WEIGHTS.removesuffix("; "),
        QUERY_KEY,
        ("Q", "K"),
        "A_bar",
        ("S", "Q", "K"),
        identities=(Identity(f"{WEIGHTS}sum(A, axis=1)", "ones(n)", QUERY_KEY, "every row sums to 1"),),
    )
)

add(
    Entry(
        "attention.output",
        "The output is a weighted mean of the values",
        "输出是值的加权平均",
        "gradient",
        "N, S",
        "proved",
        r"O = AV",
        OUTPUT,
        {"A": "n,n", "V": "n,d_v"},
        ("A", "V"),
        "O_bar",
        ("A", "V"),
    )
)

add(
    Entry(
        "attention.neighbourhood",
        "Attention as message passing",
        "注意力作为消息传递",
        "identity",
        "S-E11",
        "proved",
        r"z_i = \sum_j \alpha_{ij} v_j",
        identities=(
            Identity(
                "z[i,k] = sum[j](A[i,j]*V[j,k])",
                OUTPUT,
                {"A": "n,n", "V": "n,d_v"},
                "the same equation as attention.output",
            ),
        ),
        note="That the weights adapt to meaning is a reading, not a theorem.",
        note_zh="“语义空间中的自适应邻域聚合”是一种解读，不是定理。",
    )
)

add(
    Entry(
        "attention.full",
        "Scaled dot-product attention",
        "缩放点积注意力",
        "gradient",
        "N, S-E2",
        "proved",
        r"\operatorname{Attention}(Q,K,V) = \operatorname{softmax}\bigl(QK^\top/\sqrt{d_k}\bigr)V",
        WEIGHTS + OUTPUT,
        ATTENTION_SHAPES,
        ("Q", "K", "V"),
        "O_bar",
        ("V", "A", "S", "Q", "K"),
    )
)

add(
    Entry(
        "attention.shapes",
        "The shapes of attention",
        "注意力各矩阵的形状",
        "count",
        "N",
        "proved",
        r"Q: n \times d_k,\; K^\top: d_k \times n,\; QK^\top, A: n \times n,\; V, O: n \times d_v",
        evidence="gradproof.models.evidence.attention:shapes",
    )
)

add(
    Entry(
        "attention.flops",
        "Operations of scaled dot-product attention",
        "缩放点积注意力的计算量",
        "count",
        "N",
        "proved",
        r"O(n^2 d_k) + O(n^2 d_v)",
        evidence="gradproof.models.evidence.counts:attention_flops",
        note="Exactly 2n²d_k for QKᵀ and 2n²d_v for AV, one multiply-add counting as two operations.",
        note_zh="QKᵀ 恰为 2n²d_k 次，AV 恰为 2n²d_v 次（一次乘加记两次运算）。",
    )
)

add(
    Entry(
        "attention.bottleneck",
        "When n² is the bottleneck",
        "n² 何时成为瓶颈",
        "claim",
        "N",
        "corrected",
        r"O(n^2 d) \text{ in total: } n^2 \text{ is the bottleneck}",
        identities=(
            Identity(
                "d = 512; n = 512; where(4*n**2*d > 8*n*d**2, 1, 0)",
                "1",
                {},
                "the part with n² is the larger one at n = d = 512 already",
                "refuted",
            ),
        ),
        evidence="gradproof.models.evidence.counts:bottleneck",
        right=r"8nd^2 + 4n^2d:\ \text{the part with } n^2 \text{ is the larger one only for } n > 2d",
        note="The four projections cost 8nd², scores and mixing 4n²d. So the part with n² is the larger one only for"
        " n > 2d.",
        note_zh="四个投影需 8nd² 次运算，分数与加权求和需 4n²d 次；仅当 n > 2d 时含 n² 的部分才更大。",
    )
)

add(
    Entry(
        "attention.block_backward",
        "The backward pass of an attention block",
        "注意力模块的反向计算",
        "gradient",
        "C15.3",
        "proved",
        r"R = X + Z W_O,\quad Z = A V",
        BLOCK,
        BLOCK_SHAPES,
        (*BLOCK_PARAMETERS, "X"),
        "R_bar",
        ("W_O", "Z", "A", "V", "S", "Q", "K", "W_Q", "W_K", "W_V", "X"),
        note="The input X receives the residual path and three projection paths: they add up.",
        note_zh="输入 X 同时经残差与三条投影路径影响损失，各路径的梯度相加。",
    )
)

add(
    Entry(
        "attention.masked_backward",
        "The backward pass of masked attention weights",
        "带掩码的注意力权重的反向计算",
        "gradient",
        "C15.3",
        "proved under assumptions",
        r"\bar S_{ij} = a_{ij}\Bigl(\bar A_{ij} - \sum_{r \in J_i} a_{ir} \bar A_{ir}\Bigr)",
        "a = softmax(where(M == 1, S, -inf))",
        {"S": "n,m", "M": "n,m:index=2"},
        ("S",),
        "Abar",
        ("S",),
        form="index",
        assumptions=("every row has an allowed place",),
        note="M_ij = 1 marks the allowed places J_i. A forbidden weight is 0, so the sum over all places is the sum"
        " over"
        " the allowed ones, and the gradient of a forbidden score is 0.",
        note_zh="M_ij = 1 表示允许的位置 J_i。被禁止的权重为 0，故对全部位置求和即对允许位置求和，被禁止分数的梯度为"
        " 0。",
    )
)

add(
    Entry(
        "attention.causal_mask",
        "The causal mask",
        "因果掩码",
        "identity",
        "S-E5, S-E22",
        "corrected",
        r"M_{ij} = 0 \text{ if } i \ge j, -\infty \text{ if } i < j;\quad"
        r" \alpha_{ij} = \operatorname{softmax}(\cdot) \text{ if } j \le i, \text{ else } 0",
        identities=(
            Identity(
                CAUSAL + "A",
                "F[i,j] = where(j <= i, exp(S[i,j]) / sum[r](where(r <= i, exp(S[i,r]), 0)), 0)",
                {"S": "n,n"},
                "the additive mask is a softmax over the allowed positions",
            ),
            Identity(CAUSAL + "sum(A, axis=1)", "ones(n)", {"S": "n,n"}, "its rows sum to 1"),
            Identity(
                CAUSAL + "A",
                "P = softmax(S); F[i,j] = where(j <= i, P[i,j], 0)",
                {"S": "n,n"},
                "S-E22 as printed: softmax over all positions, then zeros",
                "refuted",
            ),
            Identity(
                "P = softmax(S); F[i,j] = where(j <= i, P[i,j], 0); sum(F, axis=1)",
                "ones(n)",
                {"S": "n,n"},
                "the rows of S-E22 as printed sum to 1",
                "refuted",
            ),
        ),
        evidence="gradproof.models.evidence.attention:causal_mask",
        right=r"\alpha_{ij} = \frac{e^{s_{ij}}}{\sum_{r \le i} e^{s_{ir}}} \text{ if } j \le i, \text{ else } 0",
        note="E22 as printed normalises over all positions and then sets some to 0, so its rows do not sum to 1. The"
        " mask"
        " belongs inside the softmax. A row with nothing allowed has no softmax; its weights are set to 0, never NaN.",
        note_zh="E22 先对全部位置归一化再置零，行和不为 1；掩码应放在 softmax 之内。若某行没有允许的位置，"
        "则 softmax 无定义：其权重置为 0，绝不给出 NaN。",
    )
)

add(
    Entry(
        "attention.permutation",
        "Attention without positions is permutation-equivariant",
        "无位置信息的注意力是置换等变的",
        "identity",
        "C15.6",
        "proved under assumptions",
        r"\operatorname{Attention}(PX) = P \operatorname{Attention}(X)",
        identities=(
            Identity(
                PERMUTED,
                COUNTED,
                {"X": "n,d", "B": "d,d", "p": "n:index=n"},
                "rows read through p, each position m counted as often as p reads it: once each if p is a permutation",
            ),
            Identity(
                "Y[i,k] = X[p[i],k]; Y @ B @ Y.T",
                "S = X @ B @ X.T; F[i,j] = S[p[i],p[j]]",
                {"X": "n,d", "B": "d,d", "p": "n:index=n"},
                "the scores are permuted in rows and columns",
            ),
        ),
        evidence="gradproof.models.evidence.attention:permutation",
        assumptions=("no positional encoding", "no mask"),
        note="A causal mask breaks it: exchanging two tokens changes what the others may see.",
        note_zh="因果掩码破坏等变性：交换两个词元会改变其他位置可见的内容。",
    )
)

add(
    Entry(
        "attention.bilinear",
        "Two projections make a bilinear form",
        "两套投影构成双线性形式",
        "identity",
        "C15.8",
        "proved",
        r"q_i k_j^\top = x_i W_Q W_K^\top x_j^\top",
        identities=(
            Identity(
                "Q = X @ W_Q; K = X @ W_K; Q @ K.T",
                "X @ (W_Q @ W_K.T) @ X.T",
                {"X": "n,d", "W_Q": "d,d_k", "W_K": "d,d_k"},
                "the scores are a bilinear form of the inputs",
            ),
            Identity("W @ W.T", "(W @ W.T).T", {"W": "d,d_k"}, "W_Q = W_K makes it symmetric"),
            Identity("x @ (W @ W.T) @ x", "sum((x @ W)**2)", {"x": "d", "W": "d,d_k"}, "and positive semidefinite"),
            Identity("W_Q @ W_K.T", "W_K @ W_Q.T", {"W_Q": "d,d_k", "W_K": "d,d_k"}, "symmetric in general", "refuted"),
        ),
        evidence="gradproof.models.evidence.attention:bilinear",
        note="The rank of W_Q W_Kᵀ is at most d_k, since its columns are combinations of the d_k columns of W_Q.",
        note_zh="W_Q W_Kᵀ 的列都是 W_Q 的 d_k 个列的组合，故秩不超过 d_k。",
    )
)

add(
    Entry(
        "attention.cross",
        "Cross-attention",
        "交叉注意力",
        "gradient",
        "C15.9",
        "proved",
        r"Q = YW_Q,\; K = XW_K,\; V = XW_V,\quad A: T \times m",
        CROSS,
        {**PROJECTION_SHAPES, "X": "m,d", "Y": "T,d"},
        ("W_Q", "W_K", "W_V", "Y", "X"),
        "O_bar",
        ("A", "V", "S", "Q", "K", "W_Q", "W_K", "W_V", "Y", "X"),
        note="Queries come from the decoder (T positions of Y), keys and values from the encoder (m positions of X).",
        note_zh="查询来自解码器（Y 的 T 个位置），键和值来自编码器（X 的 m 个位置）。",
    )
)
