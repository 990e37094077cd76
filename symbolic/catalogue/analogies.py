"""Views and analogies: geometry, transport, statistical mechanics, learning theory, influence."""

from gradproof.symbolic.catalogue.entry import Claim, Entry, Identity, Moment, add

EVIDENCE = "gradproof.models.evidence.analogies:"
FREE_ENERGY = "F = -logsumexp(-beta*E)/beta"
ENERGIES = {"E": "n", "beta": ""}
TRANSPORT = {"alpha": "n,m:simplex", "c": "n,m", "epsilon": ""}
# a network with one hidden layer of m units
TWO_LAYERS = "z = W @ x; f = a @ sigma(z) / sqrt(m)"
TWO_LAYER_SHAPES = {"W": "m,d", "x": "d", "a": "m"}
# in the eigenbasis of the kernel on the training points, with eigenvalues k: residual r = f_0 − y
FLOW = "y + exp(-eta*k*t)*(f_0 - y)"
FLOW_SHAPES = {"y": "n", "f_0": "n", "k": "n", "eta": "", "t": "", "C": "n"}

add(
    Entry(
        "geometry.cosine",
        "Cosine similarity",
        "余弦相似度",
        "gradient",
        "S-E11",
        "proved under assumptions",
        r"\cos(e_i, e_j) = \frac{e_i \cdot e_j}{\lVert e_i \rVert\, \lVert e_j \rVert}",
        "c = x @ y / (norm(x)*norm(y))",
        {"x": "d", "y": "d"},
        ("x", "y"),
        identities=(
            Identity(
                "p = 3*x; p @ y / (norm(p)*norm(y))",
                "x @ y / (norm(x)*norm(y))",
                {"x": "d", "y": "d"},
                "lengths do not matter",
            ),
        ),
        evidence=EVIDENCE + "cosine",
        assumptions=("neither vector is zero",),
        note="For a zero vector there is no angle: the formula divides by 0, and its evaluation reports that.",
        note_zh="零向量没有夹角：公式除以 0，求值时会报告错误。",
    )
)

add(
    Entry(
        "geometry.intrinsic_dimension",
        "Data of low intrinsic dimension",
        "数据的内在维度",
        "claim",
        "S-E19",
        "experiment",
        r"d_{\mathrm{intrinsic}} \ll d_{\mathrm{ambient}}",
        evidence="gradproof.models.experiments.dimension:evidence",
        experiment="dimension",
        note="An estimator (two nearest neighbours) is right on data whose dimension is known. That natural language is"
        " such data is an empirical claim.",
        note_zh="二近邻估计量在已知维度的数据上给出正确结果；自然语言是否如此属于经验性论断。",
    )
)

add(
    Entry(
        "transport.softmax",
        "Attention weights as entropic transport",
        "注意力作为熵正则化传输",
        "identity",
        "S-E16",
        "proved under assumptions",
        r"\arg\min_\alpha \sum_{ij} \alpha_{ij} c_{ij} - \epsilon H(\alpha) = \operatorname{softmax}(-c/\epsilon)",
        identities=(
            Identity(
                "sum(alpha*c) + epsilon*sum(alpha*log(alpha))",
                "epsilon*sum(alpha*(log(alpha) - log_softmax(-c/epsilon))) - epsilon*sum(logsumexp(-c/epsilon,"
                " axis=1))",
                TRANSPORT,
                "the objective is ε KL(α ‖ softmax(−c/ε)) and a constant, so softmax is the only minimum",
            ),
        ),
        claims=(
            Claim(
                "sum(alpha*c + epsilon*alpha*log(alpha) - lam[:, None]*alpha)",
                {"alpha": "n,m:simplex", "c": "n,m", "epsilon": "", "lam": "n"},
                "alpha",
                "c + epsilon*(log(alpha) + 1) - lam[:, None]",
                "proved",
                "the Lagrangian of the row sums: its zero is α_ij ∝ exp(−c_ij/ε)",
            ),
        ),
        evidence=EVIDENCE + "transport",
        assumptions=("each row of α sums to 1, nothing is asked of the columns",),
        note="With both marginals fixed, as transport has them, the answer is Sinkhorn's, not softmax.",
        note_zh="若像最优传输那样同时固定两个边缘分布，解是 Sinkhorn 的，而不是 softmax。",
    )
)

add(
    Entry(
        "boltzmann.softmax",
        "Softmax is a Boltzmann distribution",
        "Softmax 是玻尔兹曼分布",
        "identity",
        "S-E20",
        "proved",
        r"P_i = e^{-\beta E_i}/Z,\quad E = -o",
        identities=(
            Identity("exp(-beta*E)/sum(exp(-beta*E))", "softmax(-beta*E)", ENERGIES, "at any inverse temperature"),
            Identity("E = -o; exp(-E)/sum(exp(-E))", "softmax(o)", {"o": "n"}, "β = 1 and energies −o"),
        ),
    )
)

add(
    Entry(
        "boltzmann.free_energy",
        "The free energy",
        "自由能",
        "gradient",
        "S-E20",
        "proved",
        r"F = -\frac1\beta \log Z,\quad \frac{\partial F}{\partial E_i} = P_i,\quad F = U - S/\beta",
        FREE_ENERGY,
        ENERGIES,
        ("E",),
        identities=(
            Identity(
                "-logsumexp(-beta*E)/beta",
                "P = softmax(-beta*E); sum(P*E) + sum(P*log_softmax(-beta*E))/beta",
                ENERGIES,
                "F = U − S/β with U = Σ P E and S = −Σ P log P",
            ),
        ),
        claims=(Claim(FREE_ENERGY, ENERGIES, "E", "softmax(-beta*E)", "proved", "the energies' own probabilities"),),
    )
)

add(
    Entry(
        "ntk.kernel",
        "The neural tangent kernel of two layers",
        "两层网络的神经切线核",
        "gradient",
        "S-E15",
        "proved",
        r"\Theta(x, x') = \langle \nabla f(x), \nabla f(x') \rangle",
        TWO_LAYERS,
        TWO_LAYER_SHAPES,
        ("a", "W"),
        identities=(
            Identity(
                "z = W @ x; u = W @ y; g = sigma(z)/sqrt(m); h = sigma(u)/sqrt(m); "
                "G = outer(a*dsigma(z), x)/sqrt(m); H = outer(a*dsigma(u), y)/sqrt(m); g @ h + sum(G*H)",
                "z = W @ x; u = W @ y; mean(sigma(z)*sigma(u)) + (x @ y)*mean(a**2*dsigma(z)*dsigma(u))",
                {"W": "m,d", "x": "d", "y": "d", "a": "m"},
                "the inner product of the gradients in closed form",
            ),
        ),
        claims=(
            Claim(
                TWO_LAYERS, TWO_LAYER_SHAPES, "W", "outer(a*dsigma(W @ x), x)/sqrt(m)", "proved", "the gradient by W"
            ),
            Claim(TWO_LAYERS, TWO_LAYER_SHAPES, "a", "sigma(W @ x)/sqrt(m)", "proved", "the gradient by a"),
        ),
        evidence="gradproof.models.experiments.ntk:evidence",
        experiment="ntk_width",
        note="For ReLU and random weights the kernel has a limit as the width m grows; the deviation falls like 1/√m.",
        note_zh="对 ReLU 与随机权重，宽度 m 增大时核有极限，偏差以 1/√m 减小。",
    )
)

add(
    Entry(
        "ntk.dynamics",
        "Training under a fixed kernel",
        "核不变时的训练动力学",
        "identity",
        "S-E15",
        "corrected",
        r"f_t(x) \approx f_0(x) + \Theta(x, X)\,\Theta(X, X)^{-1} (Y - f_0(X))",
        identities=(
            Identity(
                "y - (" + FLOW + ")",
                "exp(-eta*k*t)*(y - f_0)",
                FLOW_SHAPES,
                "the residual shrinks by exp(−η k t) along each eigenvector of the kernel",
            ),
        ),
        claims=(
            Claim(
                f"sum(C*({FLOW}))",
                FLOW_SHAPES,
                "t",
                f"sum(C*(-eta*k*(({FLOW}) - y)))",
                "proved",
                "with the factor I − exp(−ηΘt) the flow solves df/dt = −ηΘ(f − y), here in the eigenbasis of Θ",
            ),
            Claim(
                "sum(C*(f_0 + (y - f_0)) + 0*t)",
                FLOW_SHAPES,
                "t",
                "sum(C*(-eta*k*(f_0 - y)))",
                "refuted",
                "the document's form, constant in t, put into the same equation at t = 0",
            ),
        ),
        evidence="gradproof.models.experiments.ntk:dynamics",
        assumptions=("gradient flow on ½ squared loss", "the kernel does not change (exact for models linear in Θ)"),
        right=r"f_t(x) = f_0(x) + \Theta(x, X)\,\Theta(X, X)^{-1} \bigl(I - e^{-\eta \Theta t}\bigr)(Y - f_0(X))",
        note="The document's formula is the limit t → ∞. At time t the factor I − exp(−ηΘt) stands in between.",
        note_zh="文中公式是 t → ∞ 的极限；在时刻 t 中间还有因子 I − exp(−ηΘt)。",
    )
)

add(
    Entry(
        "double_descent.experiment",
        "Double descent",
        "双下降",
        "experiment",
        "S-E15",
        "experiment",
        r"\text{test error falls, rises at } P \approx N \text{, and falls again}",
        evidence="gradproof.models.experiments.double_descent:evidence",
        experiment="double_descent",
        note="Random features with minimum-norm least squares. Shown for this model, not for language models.",
        note_zh="随机特征加最小范数最小二乘。仅对该模型展示，并非对大语言模型的结论。",
    )
)

add(
    Entry(
        "rademacher.definition",
        "The empirical Rademacher complexity",
        "经验 Rademacher 复杂度",
        "statistic",
        "S-E17",
        "proved under assumptions",
        r"\hat{\mathfrak R}_n(\mathcal F) = \mathbb E_\sigma \sup_{f \in \mathcal F} \frac1n \sum_i \sigma_i f(x_i)"
        r" \le \frac{B}{n} \sqrt{\textstyle\sum_i \lVert x_i \rVert^2}",
        moments=(
            Moment(
                "expectation",
                "sum[k](sum[i](s[i]*X[i,k])**2)",
                {"s": "n:iid=0,1", "X": "n,d"},
                "sum(X**2)",
                "E ‖Σ σ_i x_i‖² = Σ ‖x_i‖² for random signs; Jensen's inequality gives the bound",
            ),
        ),
        evidence=EVIDENCE + "rademacher",
        assumptions=("linear functions with ‖w‖ ≤ B",),
        note="For that class the supremum is B‖Σ σ_i x_i‖/n, so small n can be enumerated exactly.",
        note_zh="对该函数类，上确界为 B‖Σ σ_i x_i‖/n，因此小 n 可精确枚举。",
    )
)

add(
    Entry(
        "rademacher.generalisation",
        "A generalisation bound",
        "泛化界",
        "bound",
        "S-E17",
        "proved under assumptions",
        r"L(f) \le \hat L(f) + 2 \hat{\mathfrak R}_n(\ell \circ \mathcal F) + 3 \sqrt{\frac{\log(2/\delta)}{2n}}",
        evidence="gradproof.models.experiments.generalisation:evidence",
        experiment="generalisation",
        assumptions=(
            "a loss in [0, 1]",
            "the complexity is that of the class of losses",
            "an independent sample; the bound holds for all f at once with probability at least 1 − δ",
        ),
        note="The document leaves the constants open (O). The constant 3 and the 2 in log(2/δ) are the usual ones. The"
        " proof, by symmetrisation and McDiarmid's inequality, is not derived here: what it takes from each is"
        " computed exactly on a small case, and the coverage is simulated.",
        note_zh="文中常数未定（O）；这里取通常的 3 与 log(2/δ)。其证明依靠对称化与 McDiarmid 不等式，此处未作推导，"
        "只在一个小例上精确验证二者，并用模拟检验覆盖率。",
    )
)

add(
    Entry(
        "rademacher.architecture",
        "What a complexity depends on",
        "复杂度取决于什么",
        "claim",
        "S-E17",
        "counterexample",
        r"\text{“the complexity depends on depth, width and number of heads”}",
        identities=(
            Identity(
                "F[i] = sum[r](a[r]*relu(sum[k](W[r,k]*X[i,k])))",
                "v[r] = sqrt(sum[k](W[r,k]**2)); F[i] = sum[r](a[r]*v[r]*relu(sum[k](W[r,k]/v[r]*X[i,k])))",
                {"a": "h", "W": "h,d", "X": "n,d"},
                "a network is Σ_r a_r‖w_r‖ times a unit with ‖w‖ = 1: no width exceeds B times the best single unit",
            ),
            Identity(
                "sum[r=0:h](a/h*relu(w @ x)) + 0*y[0]",
                "a*relu(w @ x)",
                {"a": "", "w": "d", "x": "d", "y": "h"},
                "one unit is h equal ones with 1/h of its weight: every width reaches what a single unit reaches",
            ),
        ),
        evidence=EVIDENCE + "architecture",
        right=r"\sum_r |a_r|\, \lVert w_r \rVert \le B \;\Rightarrow\; \hat{\mathfrak R}_n \text{ is"
        r" the same at every width}",
        note="A norm-based bound depends on the norms of the weights. With Σ_r |a_r| ‖w_r‖ ≤ B the class of ReLU"
        " networks has the same complexity at every width.",
        note_zh="基于范数的界取决于权重的范数：在 Σ_r |a_r| ‖w_r‖ ≤ B 的限制下，ReLU 网络类在任何宽度下复杂度相同。",
    )
)

add(
    Entry(
        "quantum.measurement",
        "Attention as quantum measurement",
        "注意力与量子测量的类比",
        "claim",
        "S-E18",
        "analogy",
        r"\alpha_{ij} \sim |\langle q_i | k_j \rangle|^2",
        identities=(
            Identity(
                "c = x/norm(x); sum(c**2)",
                "1",
                {"x": "n"},
                "a superposition is normalised by its length, not by softmax",
            ),
        ),
        claims=(
            Claim(
                "sum(C*softmax(K @ q))",
                {"K": "n,d", "q": "d", "C": "n"},
                "C",
                "(K @ q)**2/sum((K @ q)**2)",
                "refuted",
                "squared overlaps, as if they were the attention weights",
            ),
        ),
        evidence=EVIDENCE + "quantum",
        right=r"\alpha_{ij} = \frac{e^{q_i \cdot k_j}}{\sum_r e^{q_i \cdot k_r}} \ne \frac{(q_i \cdot"
        r" k_j)^2}{\sum_r (q_i \cdot k_r)^2}",
        note="Squared overlaps are not the softmax of overlaps, and a sign matters to softmax only. Attention"
        " returns the weighted mixture itself; nothing collapses to one state.",
        note_zh="重叠平方不是重叠的 softmax，且只有 softmax 区分符号。注意力返回加权混合本身，并没有坍缩到某一状态。",
    )
)

add(
    Entry(
        "interpretation.loss_and_weight",
        "The loss falls while an attention weight falls",
        "损失下降而注意力权重也下降",
        "experiment",
        "C15.10",
        "experiment",
        r"L: 2.542 \to 1.761,\quad \alpha: 0.7311 \to 0.7137",
        evidence="gradproof.models.evidence.algorithms:loss_and_weight",
        note="The tiny model, one gradient step at rate 0.1.",
        note_zh="24 参数小模型，学习率 0.1 的一步梯度下降。",
    )
)

add(
    Entry(
        "interpretation.attention_weight",
        "A large attention weight is not influence",
        "注意力权重大不等于影响大",
        "claim",
        "C15.10",
        "counterexample",
        r"\text{“a large weight } \alpha_j \text{ is a large influence”}",
        claims=(
            Claim(
                "z = sum(m[:, None]*alpha[:, None]*V, axis=0); z @ u",
                {"m": "n", "alpha": "n:simplex", "V": "n,d", "u": "d"},
                "m",
                "alpha",
                "refuted",
                "the influence of a word on the output u·z, as if it were its attention weight",
            ),
            Claim(
                "z = sum(m[:, None]*alpha[:, None]*V, axis=0); z @ u",
                {"m": "n", "alpha": "n:simplex", "V": "n,d", "u": "d"},
                "m",
                "alpha*(V @ u)",
                "proved",
                "the weight times the component of the value along u",
            ),
        ),
        evidence=EVIDENCE + "influence",
        right=r"\frac{\partial L}{\partial m_j} = \alpha_j\, (v_j \cdot u) \text{ when word } j \text{"
        r" is scaled by } m_j",
        note="A word's influence on the output is its weight times the component of its value along u: it is 0 for a"
        " value at right angles to u, however large the weight.",
        note_zh="一个词对输出的影响是权重乘以其值向量在 u 方向的分量：值与 u 正交时，权重再大影响也为 0。",
    )
)
