"""Recurrent networks (source N)."""

from gradproof.symbolic.catalogue.entry import Claim, Entry, add

STEP = "z = W_h @ h_0 + W_x @ x + b; h = sigma(z)"
STEP_SHAPES = {"W_h": "d,d", "h_0": "d", "W_x": "d,e", "x": "e", "b": "d"}
SEQUENCE = (
    "h[0,k] = h_0[k]; "
    "z[t,k] = sum[l](W_h[k,l]*h[t,l]) + sum[r](W_x[k,r]*x[t,r]) + b[k]; "
    "h[t+1,k] = sigma(z[t,k])"
)
SEQUENCE_SHAPES = {"h_0": "d", "W_h": "d,d", "W_x": "d,e", "x": "T,e", "b": "d"}

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
                "tanh(W_h @ h + u)",
                {"W_h": "d,d", "h": "d", "u": "d"},
                "h",
                "W_h.T @ diag(1 - tanh(W_h @ h + u)**2)",
                "refuted",
                "the document's form, read as a Jacobian in numerator layout",
                layout="numerator",
            ),
            Claim(
                "tanh(W_h @ h + u)",
                {"W_h": "d,d", "h": "d", "u": "d"},
                "h",
                "diag(1 - tanh(W_h @ h + u)**2) @ W_h",
                "proved",
                "the Jacobian in numerator layout",
                layout="numerator",
            ),
        ),
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
        note="In numerator layout J_t = diag(σ′(z_t)) W_h J_{t−1}: the factor of the latest step stands on the left,"
        " j = t, t−1, …, k+1. In the document's (denominator) layout the order is the reverse. The length is a symbol.",
        note_zh="分子布局下 J_t = diag(σ′(z_t)) W_h J_{t−1}，最近一步的因子在最左；文中分母布局下次序相反。长度为符号。",
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
        note="G is the gradient of the loss with respect to every state, taken directly; h̄ adds what comes back from"
        " the following step. The derivation does not depend on the length T.",
        note_zh="G 是损失对各时刻隐状态的直接梯度；h̄ 还要加上后一步传回的部分。推导与长度 T 无关。",
    )
)
