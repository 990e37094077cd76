"""Components of the Transformer, and the tiny model (sources N, S, C15)."""

from gradproof.symbolic.catalogue.attention import MASKED_WEIGHTS
from gradproof.symbolic.catalogue.entry import Claim, Entry, add
from gradproof.symbolic.catalogue.multihead import JOINED, MHA_SHAPES, heads
from gradproof.symbolic.catalogue.position import LOOKUP, LOOKUP_SHAPES

FFN = "B = X @ W_1 + b_1; C = sigma(B); Y = C @ W_2 + b_2"
FFN_SHAPES = {"X": "n,d", "W_1": "d,d_ff", "b_1": "d_ff", "W_2": "d_ff,d", "b_2": "d"}
FFN_PARAMETERS = ("W_1", "b_1", "W_2", "b_2")
# one position, a column, as the document N has it
FFN_COLUMN = "b = W_1 @ x + b_1; c = relu(b); y = W_2 @ c + b_2"
FFN_COLUMN_SHAPES = {"x": "d", "W_1": "d_ff,d", "b_1": "d_ff", "W_2": "d,d_ff", "b_2": "d"}
SWIGLU = "B = X @ W; P = sigmoid(beta*B); C = B * P; D = X @ V; Y = (C * D) @ U"
SWIGLU_SHAPES = {"X": "n,d", "W": "d,d_ff", "V": "d,d_ff", "U": "d_ff,d", "beta": ""}
TINY = (
    "X[t,k] = E[w[t],k]; Q = X @ W_Q; K = X @ W_K; V = X @ W_V; "
    + MASKED_WEIGHTS
    + "R = X + A @ V @ W_O; l = R[n-1] @ U; L = -l[y] + logsumexp(l)"
)
TINY_SHAPES = {
    "w": "n:index=N",
    "y": ":index=N",
    "M": "n,n:index=2",
    "E": "N,d",
    "W_Q": "d,d_k",
    "W_K": "d,d_k",
    "W_V": "d,d_v",
    "W_O": "d_v,d",
    "U": "d,N",
}
TINY_PARAMETERS = ("E", "W_Q", "W_K", "W_V", "W_O", "U")
# the two sublayers of a block; LN_1 and LN_2 have gains g and shifts c
PRE_LN = (
    "N_1 = layernorm(X, eps=epsilon) * g_1 + c_1; "
    + heads("N_1", "N_1")
    + f"T = X + {JOINED}; "
    + "N_2 = layernorm(T, eps=epsilon) * g_2 + c_2; "
    + "B = N_2 @ W_1 + b_1; C = sigma(B); Y = T + C @ W_2 + b_2"
)
POST_LN = (
    heads("X", "X")
    + f"R = X + {JOINED}; "
    + "T = layernorm(R, eps=epsilon) * g_1 + c_1; "
    + "B = T @ W_1 + b_1; C = sigma(B); D = T + C @ W_2 + b_2; "
    + "Y = layernorm(D, eps=epsilon) * g_2 + c_2"
)
GAINS = {"epsilon": "", **{name: "d" for name in ("g_1", "c_1", "g_2", "c_2")}}
PROJECTIONS = {name: MHA_SHAPES[name] for name in ("W_Q", "W_K", "W_V", "W_O")}
BLOCK_SHAPES = {**FFN_SHAPES, **GAINS, **PROJECTIONS}
BLOCK_VARIABLES = ("X", "W_Q", "W_K", "W_V", "W_O", "W_1", "b_1", "W_2", "b_2", "g_1", "c_1", "g_2", "c_2")

add(
    Entry(
        "ffn.relu",
        "The feed-forward network with ReLU",
        "ReLU 前馈网络",
        "gradient",
        "N, S",
        "proved",
        r"\operatorname{FFN}(x) = W_2 \operatorname{ReLU}(W_1 x + b_1) + b_2",
        FFN_COLUMN,
        FFN_COLUMN_SHAPES,
        ("W_2", "b_2", "W_1", "b_1", "x"),
        "y_bar",
        ("W_2", "b_2", "c", "b", "W_1", "b_1", "x"),
        note="x is a column here. ReLU has no derivative at 0; the value used is 0, which is torch's.",
        note_zh="此处 x 为列向量。ReLU 在 0 处不可导，约定取 0，与 torch 相同。",
    )
)

add(
    Entry(
        "ffn.backward",
        "The backward pass of the feed-forward network",
        "前馈网络的反向计算",
        "gradient",
        "C15.5",
        "proved",
        r"B = XW_1 + b_1,\; C = \sigma(B),\; Y = CW_2 + b_2",
        FFN,
        FFN_SHAPES,
        ("W_2", "b_2", "W_1", "b_1", "X"),
        "Y_bar",
        ("W_2", "C", "B", "W_1", "X", "b_1", "b_2"),
        note="σ is any differentiable function; tanh stands in where numbers are needed.",
        note_zh="σ 可为任意可微函数；需要数值时以 tanh 代替。",
    )
)

add(
    Entry(
        "ffn.parameters",
        "Parameters of the feed-forward network",
        "前馈网络的参数量",
        "count",
        "N",
        "proved under assumptions",
        r"2\, d_{\text{model}} d_{ff} = 8 d_{\text{model}}^2",
        evidence="gradproof.models.evidence.counts:ffn_parameters",
        assumptions=("d_ff = 4 d_model", "no biases"),
        note="The documented b_1 and b_2 add 5 d_model.",
        note_zh="文中的偏置 b_1、b_2 另加 5 d_model。",
    )
)

add(
    Entry(
        "ffn.share",
        "The share of the feed-forward networks",
        "前馈网络占参数的比例",
        "claim",
        "N",
        "proved under assumptions",
        r"\text{about } 2/3 \text{ of the parameters}",
        evidence="gradproof.models.evidence.counts:ffn_share",
        assumptions=("one block without cross-attention", "embeddings and biases not counted", "d_ff = 4 d_model"),
        note="8/(8 + 4). With cross-attention the decoder's share is 8/16; with embeddings it depends on the"
        " vocabulary.",
        note_zh="即 8/(8 + 4)。解码器含交叉注意力时为 8/16；计入嵌入后取决于词表大小。",
    )
)

add(
    Entry(
        "ffn.swiglu",
        "SwiGLU",
        "SwiGLU 前馈网络",
        "gradient",
        "S-E4",
        "proved",
        r"(\operatorname{Swish}(xW) \odot (xV))\, U,\quad \operatorname{Swish}(x) = x\,\sigma(\beta x)",
        SWIGLU,
        SWIGLU_SHAPES,
        ("U", "W", "V", "X", "beta"),
        "Y_bar",
        ("U", "C", "D", "B", "W", "V", "X", "beta"),
    )
)

add(
    Entry(
        "residual.gradient",
        "The gradient through a residual connection",
        "残差连接的梯度",
        "gradient",
        "N, S-E4",
        "proved",
        r"\frac{\partial L}{\partial x} = \frac{\partial L}{\partial y}\Bigl(1 + \frac{\partial f}{\partial x}\Bigr)",
        "b = W_1 @ x; y = x + W_2 @ sigma(b)",
        {"x": "d", "W_1": "d_ff,d", "W_2": "d,d_ff"},
        ("x",),
        mode="jacobian",
        claims=(
            Claim(
                "x + A @ x", {"x": "d", "A": "d,d"}, "x", "eye(d) + A", "proved", "J_y = I + J_F", layout="numerator"
            ),
            Claim(
                "x + A @ x",
                {"x": "d", "A": "d,d"},
                "x",
                "ones(d, d) + A",
                "refuted",
                "the printed 1 is the identity matrix, no matrix of ones",
                layout="numerator",
            ),
        ),
        note="For vectors the 1 is the identity matrix: J_y = I + J_F.",
        note_zh="对向量而言，式中的 1 是单位矩阵：J_y = I + J_F。",
    )
)

add(
    Entry(
        "residual.identity_path",
        "A residual path does not rule out vanishing gradients",
        "残差路径不排除梯度消失",
        "claim",
        "N, C15.7",
        "counterexample",
        r"y = x + F(x) \text{ avoids vanishing gradients}",
        claims=(
            Claim(
                "x + A @ x",
                {"x": "d", "A": "d,d"},
                "x",
                "eye(d) + A",
                "proved",
                "the identity path is there",
                layout="numerator",
            ),
            Claim(
                "x - x", {"x": "d"}, "x", "zeros(d, d)", "proved", "F(x) = −x: the gradient is 0", layout="numerator"
            ),
            Claim(
                "x - x",
                {"x": "d"},
                "x",
                "eye(d)",
                "refuted",
                "as if the identity path always came through",
                layout="numerator",
            ),
        ),
        evidence="gradproof.models.evidence.transformer:identity_path",
        right=r"\lVert J_F \rVert \le q < 1 \text{ in each of } L \text{ layers} \;\Rightarrow\; \lVert"
        r" \bar x \rVert \ge (1 - q)^L \lVert \bar y \rVert",
        note="What holds: where ‖J_F‖ ≤ q < 1 in every layer, the gradient shrinks at most by (1 − q)^L.",
        note_zh="成立的是：若每层 ‖J_F‖ ≤ q < 1，则经 L 层后梯度至多缩小到 (1 − q)^L 倍。",
    )
)

add(
    Entry(
        "block.pre_ln",
        "A Pre-LN Transformer block",
        "Pre-LN Transformer 模块",
        "gradient",
        "N, C15.5",
        "proved",
        r"T = X + \operatorname{MHA}(\operatorname{LN}_1 X),\quad Y = T + \operatorname{FFN}(\operatorname{LN}_2 T)",
        PRE_LN,
        BLOCK_SHAPES,
        BLOCK_VARIABLES,
        "Y_bar",
        form="index",
    )
)

add(
    Entry(
        "block.post_ln",
        "A Post-LN Transformer block",
        "Post-LN Transformer 模块",
        "gradient",
        "N",
        "proved",
        r"T = \operatorname{LN}_1(X + \operatorname{MHA}(X)),\quad Y = \operatorname{LN}_2(T + \operatorname{FFN}(T))",
        POST_LN,
        BLOCK_SHAPES,
        BLOCK_VARIABLES,
        "Y_bar",
        form="index",
    )
)

add(
    Entry(
        "block.pre_vs_post",
        "Gradients by depth: Pre-LN and Post-LN",
        "各层梯度：Pre-LN 与 Post-LN",
        "experiment",
        "N",
        "experiment",
        r"\text{Pre-LN trains more stably}",
        evidence="gradproof.models.evidence.transformer:pre_vs_post",
        experiment="block_depth",
        assumptions=("at initialisation", "Xavier weights, Gaussian inputs, a random linear loss, 4 seeds"),
        note="Measured: the gradient norm of the last layer's W_2 by depth. That training is more stable is an"
        " empirical finding.",
        note_zh="测量初始化时最后一层 W_2 的梯度范数随深度的变化；“训练更稳定”是经验结论。",
    )
)

add(
    Entry(
        "output.tied",
        "Tied input and output embeddings",
        "输入输出嵌入共享",
        "gradient",
        "C15.6",
        "proved",
        r"U = E^\top",
        f"{LOOKUP}; H = sigma(X @ W); l = H @ E.T",
        {**LOOKUP_SHAPES, "W": "d,d"},
        ("E", "W"),
        "l_bar",
        ("H", "X", "E", "W"),
        evidence="gradproof.models.evidence.transformer:tied",
        note="Σ over the positions that read the row is the input path, Hᵀl̄ the output path: they add up.",
        note_zh="对读取该行的位置求和是输入路径，Hᵀl̄ 是输出路径，两者相加。",
    )
)

add(
    Entry(
        "output.projection",
        "The output projection",
        "输出投影",
        "gradient",
        "S, C15.3",
        "proved",
        r"\ell = hU + b",
        "l = h @ U + b",
        {"h": "n,d", "U": "d,N", "b": "N"},
        ("U", "h", "b"),
        "l_bar",
        ("U", "h", "b"),
    )
)

add(
    Entry(
        "architecture.table",
        "Who sees whom in the three architectures",
        "三种架构中的信息流",
        "algorithm",
        "C15.9",
        "proved",
        r"\text{encoder-only, decoder-only, encoder--decoder}",
        evidence="gradproof.models.evidence.transformer:architectures",
        note="The zero pattern of ∂output_i/∂input_j: full for an encoder, lower triangular for a decoder; in an"
        " encoder–decoder every target position sees all source positions and the target positions up to its own.",
        note_zh="∂output_i/∂input_j 的零模式：编码器为满，解码器为下三角；编码器–解码器中每个目标位置可见全部源位置"
        "及不晚于自身的目标位置。",
    )
)

add(
    Entry(
        "tiny_model.gradients",
        "All gradients of the model with 24 parameters",
        "24 参数小模型的全部梯度",
        "gradient",
        "C15.4",
        "proved",
        r"L = -\ln p_y,\quad p = \operatorname{softmax}(hU)",
        TINY,
        TINY_SHAPES,
        TINY_PARAMETERS,
        shown=TINY_PARAMETERS,
        evidence="gradproof.models.evidence.algorithms:tiny_gradients",
        note="Tokens (0, 1), target 2, loss at the last position only; M is the causal mask.",
        note_zh="词元 (0, 1)，目标 2，只在最后一个位置计算损失；M 为因果掩码。",
    )
)

add(
    Entry(
        "tiny_model.coincidence",
        "Equal gradients of W_V and W_O are a coincidence",
        "W_V 与 W_O 梯度相等只是巧合",
        "claim",
        "C15.4",
        "counterexample",
        r"\bar W_V = \bar W_O \text{ in the example}",
        TINY,
        TINY_SHAPES,
        ("W_V", "W_O"),
        shown=("W_V", "W_O"),
        claims=(
            Claim(
                "sum(G*(X + A @ (X @ W_V) @ W_O))",
                {"G": "n,d", "X": "n,d", "A": "n,n", "W_V": "d,d", "W_O": "d,d"},
                "W_V",
                "(A @ X @ W_V).T @ G",
                "refuted",
                "the gradient of W_O, as if it were that of W_V",
            ),
        ),
        evidence="gradproof.models.evidence.algorithms:tiny_coincidence",
        right=r"\bar W_V = X^\top A^\top \bar R W_O^\top,\quad \bar W_O = V^\top A^\top \bar R",
        note="Both start as the identity matrix; from another start the two gradients differ.",
        note_zh="二者都以单位矩阵为初值；换一个初值两个梯度就不同。",
    )
)
