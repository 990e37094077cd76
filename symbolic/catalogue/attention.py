"""Scaled dot-product attention (sources N, S, C15)."""

from gradproof.symbolic.catalogue.entry import Entry, add

PROJECTIONS = "Q = X @ W_Q; K = X @ W_K; V = X @ W_V; "
WEIGHTS = "S = Q @ K.T / sqrt(d_k); A = softmax(S); "
MASKED_WEIGHTS = "S = Q @ K.T / sqrt(d_k); A = softmax(where(M == 1, S, -inf)); "
BLOCK = PROJECTIONS + WEIGHTS + "Z = A @ V; R = X + Z @ W_O"
MASKED_BLOCK = PROJECTIONS + MASKED_WEIGHTS + "Z = A @ V; R = X + Z @ W_O"
BLOCK_SHAPES = {"X": "n,d", "W_Q": "d,d_k", "W_K": "d,d_k", "W_V": "d,d_v", "W_O": "d_v,d"}
BLOCK_PARAMETERS = ("W_O", "W_Q", "W_K", "W_V")

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
        "proved",
        r"\bar S_{ij} = a_{ij}\Bigl(\bar A_{ij} - \sum_{r \in J_i} a_{ir} \bar A_{ir}\Bigr)",
        "a = softmax(where(M == 1, S, -inf))",
        {"S": "n,m", "M": "n,m:index=2"},
        ("S",),
        "A_bar",
        ("S",),
        form="index",
        assumptions=("every row has an allowed place",),
        note="M_ij = 1 marks the allowed places J_i. A forbidden weight is 0, so the sum over all places is the sum over"
        " the allowed ones, and the gradient of a forbidden score is 0.",
        note_zh="M_ij = 1 表示允许的位置 J_i。被禁止的权重为 0，故对全部位置求和即对允许位置求和，被禁止分数的梯度为 0。",
    )
)
