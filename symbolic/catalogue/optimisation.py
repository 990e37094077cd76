"""Optimisation: Adam, the Bayesian reading of training, curvature (sources S-E1, S-E10, S-E19)."""

from gradproof.symbolic.catalogue.entry import Claim, Entry, Identity, Moment, add

EVIDENCE = "gradproof.models.evidence.optimisation:"
# one step number t with state m_0, v_0; the optimiser of the models runs these very equations
ADAM = (
    "m = beta_1*m_0 + (1 - beta_1)*g; v = beta_2*v_0 + (1 - beta_2)*g**2; "
    "mhat = m/(1 - beta_1**t); vhat = v/(1 - beta_2**t); "
)
ADAM_STEP = ADAM + "theta - eta*mhat/(sqrt(vhat) + epsilon)"
ADAM_SHAPES = {
    **{name: "n" for name in ("theta", "g", "m_0", "v_0")},
    **{name: "" for name in ("beta_1", "beta_2", "eta", "epsilon", "t")},
}
# softmax regression with a Gaussian prior
MAP = "O = X @ W; F = log_softmax(O); L = -sum[i](F[i,y[i]]) + lam/2*sum(W**2)"
MAP_SHAPES = {"X": "n,d", "W": "d,N", "y": "n:index=N", "lam": ""}
GAUSS = "Lambda = lam + n*tau; mu = tau*sum(x)/Lambda; "

add(
    Entry(
        "adam.step",
        "One step of Adam",
        "Adam 的一步",
        "algorithm",
        "S-E1",
        "corrected",
        r"v_t = \beta_2 v_{t-2} + (1-\beta_2) g_t^2,\quad"
        r" \Theta_{t+1} = \Theta_t - \eta\, \frac{\hat m_t}{\sqrt{\hat v_t} + \epsilon}",
        identities=(
            Identity(
                ADAM_STEP,
                "M = (beta_1*m_0 + (1 - beta_1)*g)/(1 - beta_1**t); V = (beta_2*v_0 + (1 - beta_2)*g*g)/(1 -"
                " beta_2**t); theta - eta*M/(sqrt(V) + epsilon)",
                ADAM_SHAPES,
                "the step in one line; ε stands outside the root",
            ),
            Identity(
                "v[0] = 0; v[s+1] = b*v[s] + (1-b)*q[s]; v[t]",
                "(1-b)*sum[s](b**(t-1-s)*q[s])",
                {"b": "", "q": "t"},
                "with v_{t−1}: an exponential mean of all squared gradients q_s",
            ),
        ),
        claims=(
            Claim(
                "c*(b*((1-b)*G) + (1-b)*G)",
                {"c": "", "b": "", "G": ""},
                "c",
                "(1 - b**2)*G",
                "proved",
                "v_2 from v_1 with g² = G throughout: the correction 1 − β² undoes its bias",
            ),
            Claim(
                "b = sigmoid(r); c*(b*0 + (1-b)*G)",
                {"c": "", "r": "", "G": ""},
                "c",
                "(1 - b**2)*G",
                "refuted",
                "v_2 from v_0, as the document has it: its own correction 1 − β² does not fit",
            ),
        ),
        evidence="gradproof.models.evidence.algorithms:adam",
        right=r"v_t = \beta_2 v_{t-1} + (1-\beta_2) g_t^2",
        note="The document writes v_{t−2}; it is v_{t−1}. ε is added outside the root.",
        note_zh="文中写作 v_{t−2}，应为 v_{t−1}；ε 加在根号之外。",
    )
)

add(
    Entry(
        "adam.bias_correction",
        "Adam's bias correction",
        "Adam 的偏差校正",
        "statistic",
        "S-E1",
        "proved under assumptions",
        r"\mathbb E[m_t] = (1 - \beta_1^t)\, \mathbb E[g],\quad \mathbb E[v_t] = (1 - \beta_2^t)\, \mathbb E[g^2]",
        identities=(
            Identity(
                "m[0] = 0; m[s+1] = b*m[s] + (1-b)*g[s]; m[t]",
                "(1-b)*sum[s](b**(t-1-s)*g[s])",
                {"b": "", "g": "t"},
                "the recursion unrolled; v is the same with g²",
            ),
            Identity("(1-b)*sum[s=0:t](b**s)", "1 - b**t", {"b": "", "x": "t"}, "the geometric sum, for every t"),
            Identity("b*(1 - b**t) + (1 - b)", "1 - b**(t+1)", {"b": "", "x": "t"}, "its induction step"),
        ),
        moments=(
            Moment(
                "expectation",
                "(1-b)*sum[s](b**(t-1-s)*g[s])",
                {"b": "", "g": "t:iid=mu,nu"},
                "(1 - b**t)*mu",
                "of the first moment; of the second with the mean of g² in place of μ",
            ),
        ),
        evidence=EVIDENCE + "bias_correction",
        assumptions=("g_t has the same mean and mean square at every step",),
    )
)

add(
    Entry(
        "bayes.posterior",
        "The posterior of the parameters",
        "参数的后验分布",
        "identity",
        "S-E10",
        "proved",
        r"P(\Theta \mid D) = \frac{P(D \mid \Theta)\, P(\Theta)}{P(D)}",
        identities=(
            Identity(
                "J[k,d] = prior[k]*like[k,d]; J[k,d]/sum[l](J[l,d])*sum[l](J[l,d])",
                "J[k,d] = prior[k]*like[k,d]",
                {"prior": "K:simplex", "like": "K,D:simplex"},
                "posterior times evidence is the joint distribution, for finitely many parameters",
            ),
            Identity(
                "-lam*theta**2/2 - tau*sum((x - theta)**2)/2",
                GAUSS + "-Lambda*(theta - mu)**2/2 + Lambda*mu**2/2 - tau*sum(x**2)/2",
                {"x": "n", "theta": "", "lam": "", "tau": ""},
                "prior N(0, 1/λ), data N(θ, 1/τ): the posterior is N(μ, 1/Λ), Λ = λ + nτ, μ = τΣx/Λ",
            ),
        ),
        evidence=EVIDENCE + "posterior",
    )
)

add(
    Entry(
        "bayes.training",
        "Training does not compute the posterior",
        "训练并不是在计算后验分布",
        "claim",
        "S-E10",
        "counterexample",
        r"\text{“training computes } P(\Theta \mid D) \text{, the prior is the initialisation”}",
        identities=(
            Identity(
                "a = theta - eta*sum(theta - x); a - mean(x)",
                "(1 - eta*n)*(theta - mean(x))",
                {"x": "n", "theta": "", "eta": ""},
                "a gradient step on ½Σ(θ − x)²: the start is forgotten by a factor 1 − ηn a step",
            ),
        ),
        claims=(
            Claim(
                "c*mean(x)",
                {"c": "", "x": "n", "theta_0": "", "lam": ""},
                "c",
                "(lam*theta_0 + sum(x))/(lam + n)",
                "refuted",
                "the point that training reaches, as if it were the posterior mean with the start as prior mean",
            ),
        ),
        evidence=EVIDENCE + "training",
        right=r"\hat\Theta = \arg\max_\Theta P(D \mid \Theta) \text{ is a point; } P(\Theta \mid D)"
        r" \propto P(D \mid \Theta) P(\Theta)",
        note="Maximum likelihood returns one point without a width. Where the optimum is unique the start leaves no"
        " trace, while a prior does.",
        note_zh="极大似然只给出一个点，没有宽度；最优点唯一时初值不留痕迹，而先验会留下影响。",
    )
)

add(
    Entry(
        "bayes.map",
        "Maximum a posteriori",
        "最大后验估计",
        "gradient",
        "S-E10",
        "proved",
        r"\Theta_{\mathrm{MAP}} = \arg\max_\Theta\; \log P(D \mid \Theta) + \log P(\Theta)",
        MAP,
        MAP_SHAPES,
        ("W",),
        shown=("O", "W"),
        note="Softmax regression with the prior N(0, λ⁻¹I): the loss is the negative of what is maximised.",
        note_zh="以先验 N(0, λ⁻¹I) 的 softmax 回归为例：损失是被最大化量的相反数。",
    )
)

add(
    Entry(
        "bayes.weight_decay",
        "Weight decay is a Gaussian prior",
        "权重衰减对应高斯先验",
        "identity",
        "S-E10",
        "proved under assumptions",
        r"-\log \mathcal N(\Theta; 0, \lambda^{-1} I) = \frac{\lambda}{2} \lVert\Theta\rVert^2 + \mathrm{const}",
        identities=(
            Identity(
                "-sum[k](log(sqrt(exp(r)/(2*pi))*exp(-exp(r)*theta[k]**2/2)))",
                "exp(r)/2*sum(theta**2) - n/2*(r - log(2*pi))",
                {"theta": "n", "r": ""},
                "with the precision λ = exp(r), which is positive; what is left over does not depend on Θ",
            ),
            Identity(
                "theta - eta*(g + lam*theta)",
                "(1 - eta*lam)*theta - eta*g",
                {"theta": "n", "g": "n", "eta": "", "lam": ""},
                "for plain gradient descent the penalty is decay of the weights",
            ),
        ),
        claims=(
            Claim(
                "sum(C*(1 - eta*lam)*theta)",
                {"C": "n", "theta": "n", "lam": "", "eta": "", "epsilon": ""},
                "C",
                "theta - eta*lam*theta/(abs(lam*theta) + epsilon)",
                "refuted",
                "decoupled decay (AdamW), as if it were the first step of Adam with the penalty as its gradient (g ="
                " 0)",
            ),
        ),
        evidence=EVIDENCE + "decay",
        assumptions=("plain gradient descent",),
        note="With Adam the penalty passes through the moments and is not decoupled decay (AdamW).",
        note_zh="在 Adam 中惩罚项会进入动量估计，与解耦的权重衰减（AdamW）不同。",
    )
)

add(
    Entry(
        "hessian.loss",
        "The Hessian of the loss",
        "损失的海森矩阵",
        "gradient",
        "S-E19",
        "proved",
        r"H = \nabla^2 L = \operatorname{diag}(p) - p p^\top \succeq 0",
        "L = -l[y] + logsumexp(l)",
        {"l": "N", "y": ":index=N"},
        ("l",),
        mode="hessian",
        form="index",
        letters={"o0": "j", "o1": "k"},
        names={"P": "p"},
        identities=(
            Identity(
                "x @ (diag(p) - outer(p, p)) @ x",
                "sum(p*(x - sum(p*x))**2)",
                {"p": "n:simplex", "x": "n"},
                "the quadratic form is the variance of x under p: never negative",
            ),
        ),
        evidence="gradproof.models.evidence.algorithms:curvature",
        note="The Hessian with respect to the parameters of a network can have negative eigenvalues, as that of the"
        " tiny model does.",
        note_zh="对网络参数的海森矩阵可以有负特征值，24 参数小模型即是如此。",
    )
)
