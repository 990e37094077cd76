"""Softmax and cross-entropy (sources C15.1, C15.2)."""

from gradproof.symbolic.catalogue.entry import Entry, Identity, add

add(
    Entry(
        "softmax.jacobian",
        "The derivative of softmax",
        "Softmax 的导数",
        "gradient",
        "C15.1",
        "proved",
        r"\frac{\partial a_j}{\partial s_k} = a_j(\delta_{jk} - a_k)",
        "a = softmax(s)",
        {"s": "n"},
        ("s",),
        mode="jacobian",
        form="index",
        letters={"o0": "j", "o1": "k"},
        note="Two cases: a_j(1 − a_j) for k = j, −a_j a_k for k ≠ j.",
        note_zh="两种情形：k = j 时为 a_j(1 − a_j)，k ≠ j 时为 −a_j a_k。",
    )
)

add(
    Entry(
        "softmax.shift",
        "Softmax does not change when all scores are shifted",
        "Softmax 的平移不变性",
        "identity",
        "C15.1",
        "proved",
        r"\operatorname{softmax}(s - c) = \operatorname{softmax}(s)",
        identities=(Identity("softmax(s - c)", "softmax(s)", {"s": "n", "c": ""}, "for every number c, the maximum too"),),
        note="This is why subtracting the maximum is safe.",
        note_zh="因此减去最大值是安全的。",
    )
)

add(
    Entry(
        "softmax.cross_entropy",
        "Softmax and cross-entropy together",
        "Softmax 与交叉熵合起来求导",
        "gradient",
        "C15.2",
        "proved",
        r"\frac{\partial L}{\partial \ell_j} = p_j - \mathbf{1}_{j=y}",
        "L = -l[y] + logsumexp(l)",
        {"l": "N", "y": ":index=N"},
        ("l",),
        form="index",
        letters={"o0": "j"},
        names={"P": "p"},
    )
)

add(
    Entry(
        "softmax.saturated_loss",
        "A confident wrong output still learns",
        "自信而错误的输出仍有梯度",
        "claim",
        "C15.2",
        "proved under assumptions",
        r"\text{the softmax Jacobian vanishes, } p - \mathbf{1}_{j=y} \text{ does not}",
        identities=(
            Identity(
                "P = softmax(l); sum[j](P[j] - delta(j, y))",
                "0",
                {"l": "N", "y": ":index=N"},
                "the entries of the combined gradient add up to 0",
            ),
        ),
        evidence="gradproof.symbolic.catalogue.evidence:saturated_loss",
        assumptions=("logits (t, 0, 0), target 1, t growing",),
    )
)

add(
    Entry(
        "variance.softmax_saturation",
        "A saturated softmax has a small Jacobian",
        "Softmax 饱和时雅可比矩阵很小",
        "bound",
        "N, C15.1",
        "proved",
        r"\lVert \operatorname{diag}(a) - a a^\top \rVert_2 \le \max_j 2 a_j (1 - a_j) \le \tfrac12",
        identities=(
            Identity(
                "F[j] = a[j]*(1 - a[j]) + sum[k](a[j]*a[k]*(1 - delta(j,k)))",
                "F[j] = 2*a[j]*(1 - a[j])",
                {"a": "n:simplex"},
                "the absolute row sums of the Jacobian: Gershgorin bounds its eigenvalues by them",
            ),
        ),
        evidence="gradproof.symbolic.catalogue.evidence:saturation",
        note="The matrix is symmetric, so its spectral norm is at most the largest absolute row sum, 2a_j(1 − a_j) ≤ ½;"
        " it goes to 0 as the largest weight goes to 1.",
        note_zh="矩阵对称，谱范数不超过最大绝对行和 2a_j(1 − a_j) ≤ ½；最大权重趋于 1 时它趋于 0。",
    )
)

