"""Softmax, cross-entropy, and the distances between distributions (sources C15.1, C15.2, S-E5, S-E9, S-E21)."""

from gradproof.symbolic.catalogue.entry import Claim, Entry, Identity, add

LOGITS = {"l": "N", "y": ":index=N"}
CROSS_ENTROPY = "L = -sum(y * log_softmax(l))"
TARGET = "q = (1 - epsilon)*eye(N)[y] + epsilon/N; "
SMOOTHED = TARGET + "L = logsumexp(l) - sum(q * l)"
# a batch in which keep_b = 0 marks a row that is ignored
SMOOTHED_BATCH = (
    "q[b,j] = (1 - epsilon)*eye(N)[y[b],j] + epsilon/N; F = log_softmax(l); "
    "L = -sum[b,j](keep[b]*q[b,j]*F[b,j]) / sum(keep)"
)
SMOOTHED_BATCH_SHAPES = {"l": "B,N", "y": "B:index=N", "keep": "B:index=2", "epsilon": ""}
TWO = {"p": "n:simplex", "q": "n:simplex"}
KL = "sum(p * log(p/q))"
# J is the joint distribution of context c and word w; a row of o holds the model's logits in one context
CONTEXTS = {"J": "C,N", "o": "C,N"}
INFORMATION = (
    "T = sum(J); P = J/T; P_c = sum(P, axis=1); P_w = sum(P, axis=0); F = log_softmax(o); "
    "I = sum[c,w](P[c,w]*log(P[c,w]/(P_c[c]*P_w[w]))); "
)
# a Markov chain X → T → S: the layers of a network
CHAIN = (
    "j_1[x,t] = p[x]*k_1[x,t]; j_2[x,t,s] = j_1[x,t]*k_2[t,s]; a[x,s] = sum[t](j_2[x,t,s]); "
    "t_1[t] = sum[x](j_1[x,t]); t_2[s] = sum[x](a[x,s]); u[t,s] = t_1[t]*k_2[t,s]; "
)
CHAIN_SHAPES = {"p": "n:simplex", "k_1": "n,m:simplex", "k_2": "m,r:simplex"}

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
        identities=(
            Identity("softmax(s - c)", "softmax(s)", {"s": "n", "c": ""}, "for every number c, the maximum too"),
        ),
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
        LOGITS,
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
                LOGITS,
                "the entries of the combined gradient add up to 0",
            ),
        ),
        evidence="gradproof.models.evidence.attention:saturated_loss",
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
        evidence="gradproof.models.evidence.attention:saturation",
        experiment="saturation",
        note="The matrix is symmetric, so its spectral norm is at most the largest absolute row sum, 2a_j(1 − a_j) ≤ ½;"
        " it goes to 0 as the largest weight goes to 1.",
        note_zh="矩阵对称，谱范数不超过最大绝对行和 2a_j(1 − a_j) ≤ ½；最大权重趋于 1 时它趋于 0。",
    )
)


add(
    Entry(
        "loss.cross_entropy",
        "Cross-entropy against any target",
        "对任意目标的交叉熵",
        "gradient",
        "S-E5",
        "proved",
        r"L = -\sum_i y_i \log p_i",
        CROSS_ENTROPY,
        {"l": "N", "y": "N"},
        ("l",),
        identities=(Identity("-sum(eye(N)[y]*log_softmax(l))", "-l[y] + logsumexp(l)", LOGITS, "a one-hot target"),),
        claims=(
            Claim("-sum(y*log_softmax(l))", {"l": "N", "y": "N"}, "l", "softmax(l)*sum(y) - y", "proved", "any target"),
            Claim(
                "-sum(y*log_softmax(l))",
                {"l": "N", "y": "N"},
                "l",
                "softmax(l) - y",
                "refuted",
                "p − y, which holds only where the target sums to 1",
            ),
            Claim(
                "-sum(y*log_softmax(l))",
                {"l": "N", "y": "N:simplex"},
                "l",
                "softmax(l) - y",
                "proved",
                "a target that sums to 1",
            ),
        ),
        evidence="gradproof.models.evidence.losses:cross_entropy",
        note="The gradient is p Σy − y. With a one-hot y it is p − 1[j=y].",
        note_zh="梯度为 p Σy − y；y 为独热向量时即 p − 1[j=y]。",
    )
)

add(
    Entry(
        "loss.label_smoothing",
        "Cross-entropy with label smoothing",
        "带标签平滑的交叉熵",
        "gradient",
        "S-E5",
        "proved",
        r"y^{\mathrm{smooth}} = (1-\varepsilon)\, y + \frac{\varepsilon}{|V|}",
        SMOOTHED,
        {"l": "N", "y": ":index=N", "epsilon": ""},
        ("l",),
        form="index",
        letters={"o0": "j"},
        identities=(
            Identity(
                TARGET + "sum(q)",
                "1",
                {"l": "N", "y": ":index=N", "epsilon": ""},
                "a smoothed target sums to 1",
            ),
            Identity(
                TARGET + "-sum(q * log_softmax(l))",
                SMOOTHED,
                {"l": "N", "y": ":index=N", "epsilon": ""},
                "the cross-entropy −Σ q log p, since q sums to 1",
            ),
            Identity(
                SMOOTHED,
                "F = log_softmax(l); -(1 - epsilon)*F[y] - epsilon*mean(F)",
                {"l": "N", "y": ":index=N", "epsilon": ""},
                "a mixture of two losses, as torch computes it",
            ),
        ),
        evidence="gradproof.models.evidence.losses:label_smoothing",
        note="A row whose target is ignored has gradient 0 and does not count in the mean.",
        note_zh="目标被忽略的行梯度为 0，且不计入平均。",
    )
)

add(
    Entry(
        "info.cross_entropy_kl",
        "Cross-entropy is entropy plus divergence",
        "交叉熵等于熵加 KL 散度",
        "identity",
        "S-E9",
        "proved",
        r"H(P, Q) = H(P) + D_{\mathrm{KL}}(P \Vert Q)",
        identities=(
            Identity("-sum(p*log(q))", "-sum(p*log(p)) + " + KL, TWO, "for distributions without zeros"),
            Identity(
                "-sum(p*log_softmax(l))",
                "-sum(p*log(p)) + sum(p*(log(p) - log_softmax(l)))",
                {"p": "n:simplex", "l": "n"},
                "Q a softmax",
            ),
        ),
        evidence="gradproof.models.evidence.losses:divergences",
        note="The divergence is not symmetric: swapping P and Q gives another number.",
        note_zh="KL 散度不对称：交换 P 与 Q 得到另一个数。",
    )
)

add(
    Entry(
        "info.gradient",
        "Minimising cross-entropy is minimising the divergence",
        "最小化交叉熵即最小化 KL 散度",
        "gradient",
        "S-E9",
        "proved",
        r"\nabla H(P, Q_\theta) = \nabla D_{\mathrm{KL}}(P \Vert Q_\theta)",
        "L = sum(p*log(p)) - sum(p*log_softmax(l))",
        {"p": "n:simplex", "l": "n"},
        ("l",),
        claims=tuple(
            Claim(text, {"p": "n:simplex", "l": "n"}, "l", "softmax(l) - p", "proved", says)
            for text, says in (
                ("-sum(p*log_softmax(l))", "the gradient of the cross-entropy"),
                ("sum(p*log(p)) - sum(p*log_softmax(l))", "the gradient of the divergence"),
            )
        ),
        note="H(P) does not depend on the model, so the two gradients are the same.",
        note_zh="H(P) 与模型无关，因此两个梯度相同。",
    )
)

add(
    Entry(
        "info.mutual_information",
        "Training gives a lower bound of the mutual information",
        "训练给出互信息的下界",
        "bound",
        "S-E9",
        "corrected",
        r"\text{“training maximises } I(w; c) = H(w) - H(w \mid c) \text{”}",
        identities=(
            Identity(
                INFORMATION + "I - (-sum(P_w*log(P_w)) + sum(P*F))",
                INFORMATION + "sum[c,w](P[c,w]*(log(P[c,w]/P_c[c]) - F[c,w]))",
                {"J": "C,N:simplex", "o": "C,N"},
                "the gap is the mean divergence KL(P(·|c) ‖ Q(·|c)), which is never negative",
            ),
            Identity(
                INFORMATION + "I",
                INFORMATION + "-sum(P_w*log(P_w)) + sum[c,w](P[c,w]*log(P[c,w]/P_c[c]))",
                {"J": "C,N:simplex", "o": "C,N"},
                "I = H(w) − H(w | c)",
            ),
        ),
        claims=(
            Claim(
                INFORMATION + "-sum(P_w*log(P_w)) + sum(P*F)",
                {"J": "C,N:simplex", "o": "C,N"},
                "o",
                "0*o",
                "refuted",
                "as if the trained quantity were I itself, which no parameter moves",
            ),
            Claim(
                INFORMATION + "-sum(P_w*log(P_w)) + sum(P*F)",
                {"J": "C,N:simplex", "o": "C,N"},
                "o",
                "P - P_c[:, None]*softmax(o)",
                "proved",
                "what training does move: the lower bound",
            ),
        ),
        evidence="gradproof.models.evidence.losses:mutual_information",
        right=r"H(w) - H(P, Q_\theta) \le I(w; c)",
        note="The document says that training maximises I(w; c). I belongs to the data and does not change; training"
        " maximises H(w) minus the cross-entropy, a lower bound of I that is tight at the true model.",
        note_zh="文中说训练在最大化 I(w; c)。I 由数据决定，训练并不改变它；训练最大化的是 H(w) 减交叉熵，"
        "即 I 的下界，模型等于真实分布时取等号。",
    )
)

add(
    Entry(
        "info.bottleneck",
        "The information bottleneck",
        "信息瓶颈",
        "claim",
        "S-E21",
        "counterexample",
        r"\min I(X;T) - \beta I(T;Y);\quad \text{“in early layers both rise”}",
        identities=(
            Identity(
                CHAIN + "sum[x,t](j_1[x,t]*log(k_1[x,t]/t_1[t])) - sum[x,s](a[x,s]*log(a[x,s]/(p[x]*t_2[s])))",
                CHAIN + "sum[x,t,s](j_2[x,t,s]*log(j_2[x,t,s]*t_2[s]/(a[x,s]*u[t,s])))",
                CHAIN_SHAPES,
                "I(X;T₁) − I(X;T₂) = I(X;T₁ | T₂), a mean of divergences: never negative",
            ),
            Identity(
                CHAIN
                + "where(sum[x,s](a[x,s]*log(a[x,s]/(p[x]*t_2[s]))) > sum[x,t](j_1[x,t]*log(k_1[x,t]/t_1[t])), 1, 0)",
                "1",
                CHAIN_SHAPES,
                "I(X;T) rises from the first layer to the second, as the document has it",
                "refuted",
            ),
        ),
        evidence="gradproof.models.evidence.losses:bottleneck",
        right=r"I(X;T_2) \le I(X;T_1),\quad I(T_2;Y) \le I(T_1;Y)",
        note="From layer to layer X → T₁ → T₂ neither I(X;T) nor I(T;Y) can rise (data processing inequality), so"
        " “early layers: both rise” is false of layers. A story about training time is empirical and disputed.",
        note_zh="沿层 X → T₁ → T₂，由数据处理不等式 I(X;T) 与 I(T;Y) 都不会上升，故“前几层二者增加”对层不成立；"
        "若指训练时间，则是经验性的，且有争议。",
    )
)
