"""Recurrent networks (source N)."""

from gradproof.symbolic.catalogue.entry import Claim, Entry, Identity, add

STEP = "z = W_h @ h_0 + W_x @ x + b; h = sigma(z)"
STEP_SHAPES = {"W_h": "d,d", "h_0": "d", "W_x": "d,e", "x": "e", "b": "d"}
SEQUENCE = (
    "h[0,k] = h_0[k]; z[t,k] = sum[l](W_h[k,l]*h[t,l]) + sum[r](W_x[k,r]*x[t,r]) + b[k]; h[t+1,k] = sigma(z[t,k])"
)
SEQUENCE_SHAPES = {"h_0": "d", "W_h": "d,d", "W_x": "d,e", "x": "T,e", "b": "d"}
# one step and two, with everything that does not depend on the state in u and v
ONE_STEP = "tanh(W_h @ h + u)"
ONE_STEP_SHAPES = {"W_h": "d,d", "h": "d", "u": "d"}
TWO_STEPS = "h_1 = tanh(W_h @ h + u); h_2 = tanh(W_h @ h_1 + v); h_2"
TWO_STEPS_SHAPES = {**ONE_STEP_SHAPES, "v": "d"}
CLIP = "r = norm(g); y = where(r > tau, tau*g/r, g)"

add(
    Entry(
        "rnn.cell",
        "One step of a recurrent network",
        "循环网络的一步",
        "gradient",
        "N",
        "proved",
        r"h_t = \sigma(W_h h_{t-1} + W_x x_t + b)",
        STEP,
        STEP_SHAPES,
        ("W_h", "W_x", "x", "h_0", "b"),
        "h_bar",
        ("z", "W_h", "W_x", "x", "h_0", "b"),
        note="σ is any differentiable function; tanh stands in where numbers are needed.",
        note_zh="σ 可为任意可微函数；需要数值时以 tanh 代替。",
    )
)

add(
    Entry(
        "rnn.loss_chain",
        "The chain rule from the loss to an earlier state",
        "从损失到较早隐状态的链式法则",
        "identity",
        "N",
        "proved",
        r"\frac{\partial J_t}{\partial h_k} = \frac{\partial J_t}{\partial h_t} \cdot \frac{\partial h_t}{\partial"
        r" h_k}",
        claims=(
            Claim(
                TWO_STEPS.removesuffix("h_2") + "sum(c * h_2**2)",
                {**TWO_STEPS_SHAPES, "c": "d"},
                "h",
                "(diag(1 - h_2**2) @ W_h @ diag(1 - h_1**2) @ W_h).T @ (2*c*h_2)",
                "proved",
                "two steps: the Jacobian of h₂, transposed, times the gradient at h₂",
            ),
        ),
        evidence="gradproof.models.evidence.recurrent:loss_chain",
        note="With ∂J/∂h a row on the left this is the product as printed; with gradients as columns the Jacobian is"
        " transposed and stands on the left.",
        note_zh="若 ∂J/∂h 为左边的行向量，即文中的乘积；若梯度写作列向量，则雅可比矩阵转置后写在左边。",
    )
)

add(
    Entry(
        "rnn.step_jacobian",
        "The Jacobian of one step",
        "单步雅可比矩阵",
        "gradient",
        "N",
        "corrected",
        r"\frac{\partial h_j}{\partial h_{j-1}} = W_h^\top \operatorname{diag}(\sigma'(z_j))",
        STEP,
        STEP_SHAPES,
        ("h_0",),
        mode="jacobian",
        claims=(
            Claim(
                ONE_STEP,
                ONE_STEP_SHAPES,
                "h",
                "W_h.T @ diag(1 - tanh(W_h @ h + u)**2)",
                "refuted",
                "the document's form, read as a Jacobian in numerator layout",
                layout="numerator",
            ),
            Claim(
                ONE_STEP,
                ONE_STEP_SHAPES,
                "h",
                "diag(1 - tanh(W_h @ h + u)**2) @ W_h",
                "proved",
                "the Jacobian in numerator layout",
                layout="numerator",
            ),
            Claim(
                ONE_STEP,
                ONE_STEP_SHAPES,
                "h",
                "W_h.T @ diag(1 - tanh(W_h @ h + u)**2)",
                "proved",
                "the document's form in denominator layout",
                layout="denominator",
            ),
        ),
        evidence="gradproof.models.evidence.recurrent:step_jacobian",
        right=r"\frac{\partial h_j}{\partial h_{j-1}} = \operatorname{diag}(\sigma'(z_j))\, W_h \text{"
        r" in numerator layout}",
        note="The document prints the gradient (denominator) layout W_hᵀ diag(σ′). The Jacobian of a column vector in"
        " numerator layout is diag(σ′(z)) W_h.",
        note_zh="文中写的是梯度（分母）布局 W_hᵀ diag(σ′)；列向量在分子布局下的雅可比矩阵是 diag(σ′(z)) W_h。",
    )
)

add(
    Entry(
        "rnn.jacobian_product",
        "The Jacobian over several steps",
        "多步雅可比矩阵的连乘",
        "gradient",
        "N",
        "proved",
        r"\frac{\partial h_t}{\partial h_k} = \prod_{j=k+1}^{t} \frac{\partial h_j}{\partial h_{j-1}}",
        SEQUENCE,
        SEQUENCE_SHAPES,
        ("h_0",),
        mode="propagation",
        form="index",
        claims=(
            Claim(
                TWO_STEPS,
                TWO_STEPS_SHAPES,
                "h",
                "diag(1 - h_2**2) @ W_h @ diag(1 - h_1**2) @ W_h",
                "proved",
                "numerator layout: the later factor stands on the left",
                layout="numerator",
            ),
            Claim(
                TWO_STEPS,
                TWO_STEPS_SHAPES,
                "h",
                "diag(1 - h_1**2) @ W_h @ diag(1 - h_2**2) @ W_h",
                "refuted",
                "numerator layout with the factors in rising order",
                layout="numerator",
            ),
            Claim(
                TWO_STEPS,
                TWO_STEPS_SHAPES,
                "h",
                "W_h.T @ diag(1 - h_1**2) @ W_h.T @ diag(1 - h_2**2)",
                "proved",
                "denominator layout, the document's: the factors rise from left to right",
                layout="denominator",
            ),
        ),
        note="J_h[t] is the Jacobian of h_t with respect to the starting state; counting from k instead of 0 gives"
        " ∂h_t/∂h_k. A product of matrices has an order: descending in numerator layout, rising in denominator layout.",
        note_zh="J_h[t] 是 h_t 对初始状态的雅可比矩阵；把起点由 0 换成 k 即得 ∂h_t/∂h_k。矩阵连乘有次序："
        "分子布局下 j 从左到右递减，分母布局下递增。",
    )
)

add(
    Entry(
        "rnn.bptt",
        "Back-propagation through time",
        "随时间反向传播",
        "gradient",
        "N",
        "proved",
        r"\bar h_t = \frac{\partial L}{\partial h_t} + W_h^\top \bar z_{t+1}",
        SEQUENCE,
        SEQUENCE_SHAPES,
        ("W_h", "W_x", "b", "x", "h_0"),
        "G",
        ("h", "z", "W_h", "W_x", "b", "x", "h_0"),
        form="index",
        evidence="gradproof.models.evidence.recurrent:scalar_network",
        note="G is the gradient of the loss with respect to every state, taken directly; h̄ adds what comes back from"
        " the following step. The derivation does not depend on the length T.",
        note_zh="G 是损失对各时刻隐状态的直接梯度；h̄ 还要加上后一步传回的部分。推导与长度 T 无关。",
    )
)

add(
    Entry(
        "rnn.singular_bound",
        "A bound on the Jacobian over several steps",
        "多步雅可比矩阵的范数上界",
        "bound",
        "N",
        "proved under assumptions",
        r"\Bigl\lVert \frac{\partial h_t}{\partial h_k} \Bigr\rVert \le \bigl(\gamma\,\sigma_{\max}(W_h)\bigr)^{t-k}",
        identities=(
            Identity(
                "sum((s * v)**2)",
                "gamma**2 * sum(v**2) - sum((gamma**2 - s**2) * v**2)",
                {"s": "d", "v": "d", "gamma": ""},
                "with |s_i| ≤ γ the last sum is ≥ 0: ‖diag(s) v‖ ≤ γ‖v‖",
            ),
            Identity(
                "sum((s * (W @ v))**2)",
                "gamma**2 * sum((W @ v)**2) - sum((gamma**2 - s**2) * (W @ v)**2)",
                {"s": "d", "W": "d,d", "v": "d", "gamma": ""},
                "so one step is at most γ‖Wv‖ ≤ γ σ_max ‖v‖, and t − k steps the power",
            ),
        ),
        evidence="gradproof.models.evidence.recurrent:singular_bound",
        assumptions=("|σ′| ≤ γ everywhere",),
        note="Gradients vanish exponentially where γ σ_max(W_h) < 1. The bound is reached by σ(z) = z and W_h a"
        " multiple"
        " of an orthogonal matrix. For tanh γ = 1, for the logistic function γ = ¼.",
        note_zh="当 γ σ_max(W_h) < 1 时梯度指数消失。σ(z) = z 且 W_h 为正交矩阵的倍数时取等号。"
        "tanh 的 γ = 1，logistic 函数的 γ = ¼。",
    )
)

add(
    Entry(
        "rnn.explosion",
        "A singular value above 1 does not make the product explode",
        "最大奇异值大于 1 不足以使连乘爆炸",
        "claim",
        "N",
        "counterexample",
        r"\sigma_{\max}(W_h) > 1 \;\Rightarrow\; \text{the product explodes}",
        identities=(
            Identity(
                "W = 2*outer(eye(2)[0], eye(2)[1]); where(sum((W @ W)**2) > sum(W**2), 1, 0)",
                "1",
                {},
                "the product of two factors with σ_max = 2 is larger than one factor",
                "refuted",
            ),
        ),
        evidence="gradproof.models.evidence.recurrent:explosion",
        right=r"\lVert J_t \cdots J_{k+1} \rVert \le (\gamma \sigma_{\max})^{t-k}:\ \gamma"
        r" \sigma_{\max} > 1 \text{ is necessary, not sufficient}",
        note="σ_max > 1 is necessary for an explosion where γ = 1, not sufficient: W = [[0,2],[0,0]] has σ_max = 2 and"
        " W² = 0, and saturated tanh units have derivatives near 0.",
        note_zh="γ = 1 时 σ_max > 1 是爆炸的必要条件而非充分条件：W = [[0,2],[0,0]] 的 σ_max = 2 而 W² = 0；"
        "饱和的 tanh 单元导数接近 0。",
    )
)

add(
    Entry(
        "grad.clip_norm",
        "Clipping a gradient by its norm",
        "按范数裁剪梯度",
        "algorithm",
        "N",
        "proved",
        r"g \leftarrow \begin{cases} g\,\tau/\lVert g\rVert & \lVert g\rVert > \tau \\ g & \text{otherwise}"
        r" \end{cases}",
        CLIP,
        {"g": "n", "tau": ""},
        ("g",),
        "y_bar",
        identities=(
            Identity(
                f"{CLIP}; outer(y, g)",
                f"{CLIP}; outer(g, y)",
                {"g": "n", "tau": ""},
                "y_i g_j = y_j g_i: the direction is kept",
            ),
            Identity(
                "sum((tau * g / norm(g))**2)", "tau**2", {"g": "n", "tau": ""}, "a clipped gradient has the norm τ"
            ),
            Identity(
                "r = sqrt(sum(A**2) + sum(b**2)); sum((tau*A/r)**2) + sum((tau*b/r)**2)",
                "tau**2",
                {"A": "n,m", "b": "k", "tau": ""},
                "one norm over several tensors: together they have the norm τ",
            ),
        ),
        evidence="gradproof.models.evidence.sequences:clipping",
        assumptions=("τ > 0", "the norm is finite: an inf or NaN entry is an error"),
        note="torch divides by ‖g‖ + 1e−6; the formula does not.",
        note_zh="torch 的分母是 ‖g‖ + 1e−6，公式中没有这一项。",
    )
)
