"""Layers as a dynamical system (sources S-E13, S-E23)."""

from gradproof.symbolic.catalogue.entry import Claim, Entry, Identity, add

EVIDENCE = "gradproof.models.evidence.dynamics:"
# one row of the hidden states; the rows of this map do not meet
LAYERS = "H[0,k] = x[k]; H[l+1,k] = sigma(sum[p](H[l,p]*W[l,p,k])); "
LAYER_SHAPES = {"x": "d", "W": "2,d,d"}
TWO_MAPS = "h = tanh(A @ x); L = g @ tanh(B @ h)"
TWO_MAP_SHAPES = {"A": "d,d", "B": "d,d", "x": "d", "g": "d"}
INNER, OUTER = "diag(1 - tanh(A @ x)**2) @ A", "diag(1 - tanh(B @ tanh(A @ x))**2) @ B"
NILPOTENT = "A = 2*outer(eye(2)[0], eye(2)[1]); B = 2*outer(eye(2)[1], eye(2)[0]); "

add(
    Entry(
        "dynamics.layer_map",
        "Layers as iterations of a map",
        "层作为映射的迭代",
        "identity",
        "S-E13",
        "proved",
        r"H^{(l)} = F(H^{(l-1)}; \Theta^{(l)})",
        identities=(
            Identity(
                LAYERS + "F = H; F[2]",
                "sigma(sigma(x @ W[0]) @ W[1])",
                LAYER_SHAPES,
                "the recurrence after two layers is the composition of the two maps",
            ),
        ),
        note="Each layer has parameters of its own, so the map changes from step to step; it is one map iterated only"
        " where layers share their parameters.",
        note_zh="各层参数不同，映射逐层变化；只有各层共享参数时才是同一映射的迭代。",
    )
)

add(
    Entry(
        "dynamics.fixed_point",
        "Inference does not look for fixed points",
        "推理并不在寻找不动点",
        "claim",
        "S-E13",
        "counterexample",
        r"\text{“inference looks for a fixed point } H^* = F(H^*) \text{”}",
        claims=(
            Claim(
                "sum(C*((h + b) - h))",
                {"h": "n", "b": "n", "C": "n"},
                "C",
                "0*b",
                "refuted",
                "F(h) − h, as if it could be 0",
            ),
            Claim(
                "sum(C*((h + b) - h))", {"h": "n", "b": "n", "C": "n"}, "C", "b", "proved", "F(h) − h is b everywhere"
            ),
        ),
        evidence=EVIDENCE + "fixed_point",
        right=r"F(h) = h + b \text{ has none for } b \ne 0;\quad \text{a contraction has exactly one}",
        note="A residual layer with a constant branch has no fixed point. A contraction has exactly one (Banach); a"
        " network stops after L layers either way.",
        note_zh="残差分支为常数的层没有不动点；压缩映射恰有一个（Banach）。无论如何网络在 L 层后就停止。",
    )
)

add(
    Entry(
        "dynamics.lyapunov",
        "Lyapunov stability",
        "李雅普诺夫稳定性",
        "bound",
        "S-E23",
        "proved under assumptions",
        r"V(F(H)) < V(H) \;\; \forall H \ne H^* \;\Rightarrow\; \text{global stability}",
        identities=(
            Identity(
                "F = A @ h; F @ P @ F - h @ P @ h",
                "-(h @ (P - A.T @ P @ A) @ h)",
                {"A": "d,d", "P": "d,d", "h": "d"},
                "linear F and V(h) = hᵀPh: V falls by hᵀQh where Q = P − AᵀPA (the discrete Lyapunov equation)",
            ),
            Identity(
                "f = 2*h; -(f @ f) + h @ h",
                "-3*(h @ h)",
                {"h": "d"},
                "V(h) = −‖h‖² falls along F(h) = 2h, which is unstable: V must be positive definite",
            ),
        ),
        evidence=EVIDENCE + "lyapunov",
        assumptions=(
            "F(H*) = H*",
            "V and F are continuous",
            "V is positive definite about H*",
            "V is radially unbounded",
        ),
        note="The document asks only that V decreases; without the further conditions the conclusion is false.",
        note_zh="文中只要求 V 递减；缺少其余条件时结论不成立。",
    )
)

add(
    Entry(
        "dynamics.gradient_product",
        "The gradient as a product of Jacobians",
        "梯度作为雅可比矩阵的连乘",
        "identity",
        "S-E23",
        "corrected",
        r"\frac{\partial L}{\partial H_l} = \frac{\partial L}{\partial H_L} \prod_{k=l}^{L-1}"
        r" \frac{\partial H_{k+1}}{\partial H_k}",
        claims=(
            Claim(
                TWO_MAPS,
                TWO_MAP_SHAPES,
                "x",
                f"g @ ({OUTER}) @ ({INNER})",
                "proved",
                "descending: the last layer's Jacobian first",
            ),
            Claim(
                TWO_MAPS,
                TWO_MAP_SHAPES,
                "x",
                f"g @ ({INNER}) @ ({OUTER})",
                "refuted",
                "the factors in the document's order k = l … L − 1",
            ),
        ),
        right=r"\frac{\partial L}{\partial H_l} = \frac{\partial L}{\partial H_L}\, J_{L-1} J_{L-2} \cdots J_l",
        note="With ∂L/∂H_L a row on the left the factors run k = L − 1, …, l. The document prints ∏ from k = l to L"
        " − 1.",
        note_zh="∂L/∂H_L 为左侧行向量时，因子次序为 k = L − 1, …, l；文中写作 k 从 l 到 L − 1 的连乘。",
    )
)

add(
    Entry(
        "dynamics.spectral_radius",
        "The spectral radius does not decide",
        "谱半径并不起决定作用",
        "claim",
        "S-E23",
        "counterexample",
        r"\text{“explosion depends on the spectral radius”}",
        identities=(
            Identity(
                NILPOTENT + "A @ A + B @ B", "zeros(2, 2)", {"x": "2"}, "both factors are nilpotent: spectral radius 0"
            ),
            Identity(
                NILPOTENT + "A @ B", "4*outer(eye(2)[0], eye(2)[0])", {"x": "2"}, "their product has the eigenvalue 4"
            ),
        ),
        claims=(
            Claim(
                "c*tr((2*outer(eye(2)[0], eye(2)[1])) @ (2*outer(eye(2)[1], eye(2)[0])))",
                {"c": ""},
                "c",
                "0",
                "refuted",
                "the trace of the product, as if factors of radius 0 could only give radius 0",
            ),
        ),
        evidence=EVIDENCE + "spectral_radius",
        right=r"\rho(J_1) = \rho(J_2) = 0,\ \rho(J_2 J_1) = 4;\quad \lVert J_2 J_1 \rVert \le"
        r" \sigma_{\max}(J_2)\, \sigma_{\max}(J_1)",
        note="The largest singular values bound the product; the spectral radii of its factors do not.",
        note_zh="最大奇异值可以控制乘积，各因子的谱半径则不能。",
    )
)
