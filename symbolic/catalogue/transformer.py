"""Components of the Transformer, and the tiny model (sources N, S, C15)."""

from gradproof.symbolic.catalogue.attention import MASKED_WEIGHTS
from gradproof.symbolic.catalogue.entry import Entry, Identity, add

FFN = "B = X @ W_1 + b_1; C = sigma(B); Y = C @ W_2 + b_2"
FFN_SHAPES = {"X": "n,d", "W_1": "d,d_ff", "b_1": "d_ff", "W_2": "d_ff,d", "b_2": "d"}
LAYERNORM = "xhat = layernorm(x, eps=epsilon); y = gamma * xhat + beta"
LAYERNORM_SHAPES = {"x": "d", "epsilon": "", "gamma": "d", "beta": "d"}
LAYERNORM_IN_STEPS = "mu = mean(x); c = x - mu; v = mean(c**2); s = sqrt(v + epsilon); xhat = c / s"
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
PRE_LN = (
    "N_1 = layernorm(X, eps=epsilon) * g_1 + c_1; "
    "Q[a,i,r] = sum[k](N_1[i,k]*W_Q[a,k,r]); K[a,i,r] = sum[k](N_1[i,k]*W_K[a,k,r]); V[a,i,r] = sum[k](N_1[i,k]*W_V[a,k,r]); "
    "S = Q @ K.mT / sqrt(d_k); A = softmax(S); H = A @ V; "
    "T = X + einsum('hir,hrk->ik', H, W_O); "
    "N_2 = layernorm(T, eps=epsilon) * g_2 + c_2; "
    "B = N_2 @ W_1 + b_1; C = sigma(B); Y = T + C @ W_2 + b_2"
)
PRE_LN_SHAPES = {
    "X": "n,d",
    "epsilon": "",
    **{name: "d" for name in ("g_1", "c_1", "g_2", "c_2", "b_2")},
    "W_Q": "h,d,d_k",
    "W_K": "h,d,d_k",
    "W_V": "h,d,d_k",
    "W_O": "h,d_k,d",
    "W_1": "d,d_ff",
    "b_1": "d_ff",
    "W_2": "d_ff,d",
}

add(
    Entry(
        "embedding.lookup",
        "Looking up embeddings",
        "嵌入查表",
        "gradient",
        "C15.3, S",
        "proved",
        r"x_t = E_{w_t}",
        "X[t,k] = E[w[t],k]",
        {"E": "N,d", "w": "n:index=N"},
        ("E",),
        "X_bar",
        ("E",),
        form="index",
        note="A row receives the sum over all positions that read it; a row that none reads receives 0.",
        note_zh="某一行收到所有读取它的位置的梯度之和；未被读取的行梯度为 0。",
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
        "layernorm.forward",
        "Layer normalisation",
        "层归一化",
        "gradient",
        "C15.5, S",
        "proved",
        r"\operatorname{LN}(x) = \gamma \odot \frac{x - \mu}{\sqrt{v + \varepsilon}} + \beta",
        LAYERNORM,
        LAYERNORM_SHAPES,
        ("x", "gamma", "beta"),
        "g",
        names={"xhat_bar": "u"},
        note="v is the biased mean square of the deviations, and ε stands inside the root.",
        note_zh="v 是有偏的平方偏差平均，ε 在根号内。",
    )
)

add(
    Entry(
        "layernorm.backward",
        "The backward pass of layer normalisation",
        "层归一化的反向计算",
        "gradient",
        "C15.5",
        "proved",
        r"\bar x = \frac1s\bigl[u - \operatorname{mean}(u)\mathbf{1} - \hat x\,\operatorname{mean}(u \odot \hat x)\bigr]",
        LAYERNORM,
        LAYERNORM_SHAPES,
        ("gamma", "beta", "x"),
        "g",
        ("gamma", "beta", "xhat", "x"),
        names={"xhat_bar": "u"},
    )
)

add(
    Entry(
        "layernorm.moments",
        "Mean and mean square of a normalised row",
        "归一化后的均值与均方",
        "identity",
        "C15.5",
        "proved",
        r"\operatorname{mean}(\hat x) = 0,\quad \operatorname{mean}(\hat x^2) = \frac{v}{v + \varepsilon}",
        identities=(
            Identity("mean(layernorm(x, eps=epsilon))", "0", {"x": "d", "epsilon": ""}, "the mean is 0"),
            Identity(
                "mean(layernorm(x, eps=epsilon)**2)",
                "v = mean((x - mean(x))**2); v / (v + epsilon)",
                {"x": "d", "epsilon": ""},
                "the mean square is v/(v + ε), not 1",
            ),
            Identity(
                "y = gamma * layernorm(x, eps=epsilon) + beta; mean(y)",
                "mean(gamma * layernorm(x, eps=epsilon)) + mean(beta)",
                {"x": "d", "epsilon": "", "gamma": "d", "beta": "d"},
                "with γ and β nothing more can be said of the mean",
            ),
        ),
    )
)

add(
    Entry(
        "layernorm.differentials",
        "Layer normalisation by differentials",
        "用微分推导层归一化",
        "gradient",
        "C15.5",
        "proved",
        r"d\mu = \operatorname{mean}(dx),\; dv = 2\operatorname{mean}((x-\mu) \odot dx),\; ds = \frac{dv}{2s}",
        LAYERNORM_IN_STEPS,
        {"x": "d", "epsilon": ""},
        ("x",),
        shown=("mu", "v", "s", "xhat"),
        absorbed=("c_dot",),
        mode="tangent",
        note="The forward route; contracted with u it gives the same x̄ as the backward route.",
        note_zh="前向微分路线；与 u 缩并后得到与反向路线相同的 x̄。",
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
        PRE_LN_SHAPES,
        ("X", "W_Q", "W_K", "W_V", "W_O", "W_1", "b_1", "W_2", "b_2", "g_1", "c_1", "g_2", "c_2"),
        "Y_bar",
        form="index",
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
        evidence="gradproof.models.tiny:evidence",
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
        evidence="gradproof.models.tiny:coincidence",
        note="Both start as the identity matrix; from another start the two gradients differ.",
        note_zh="二者都以单位矩阵为初值；换一个初值两个梯度就不同。",
    )
)
