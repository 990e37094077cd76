"""Layer normalisation (sources N, S, C15)."""

from gradproof.symbolic.catalogue.entry import Entry, Identity, add

LAYERNORM = "xhat = layernorm(x, eps=epsilon); y = gamma * xhat + beta"
LAYERNORM_SHAPES = {"x": "d", "epsilon": "", "gamma": "d", "beta": "d"}
LAYERNORM_IN_STEPS = "mu = mean(x); c = x - mu; v = mean(c**2); s = sqrt(v + epsilon); xhat = c / s"
# the document N's variant, with ε outside the root
SIGMA_PLUS_EPS = "c = x - mean(x); v = mean(c**2); s = sqrt(v); xhat = c / (s + epsilon); y = gamma * xhat + beta"
BATCHNORM_SHAPES = {"X": "n,d", "epsilon": "", "gamma": "d", "beta": "d"}


def normalised(axis: int) -> str:
    """The rows (axis 1, LayerNorm) or columns (axis 0, BatchNorm) of a matrix, normalised."""
    return f"xhat = layernorm(X, eps=epsilon, axis={axis}); Y = gamma * xhat + beta"


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
        "layernorm.sigma_plus_eps",
        "Layer normalisation with ε added to σ",
        "把 ε 加在 σ 上的层归一化",
        "gradient",
        "N",
        "corrected",
        r"\operatorname{LN}(x) = \frac{x - \mu}{\sigma + \epsilon} \cdot \gamma + \beta",
        SIGMA_PLUS_EPS,
        LAYERNORM_SHAPES,
        ("gamma", "beta", "x"),
        "g",
        ("gamma", "beta", "xhat", "c", "x"),
        names={"xhat_bar": "u"},
        identities=(
            Identity(
                "epsilon = 1/10; " + SIGMA_PLUS_EPS,
                "epsilon = 1/10; " + LAYERNORM,
                {name: shape for name, shape in LAYERNORM_SHAPES.items() if name != "epsilon"},
                "(x − μ)/(σ + ε) and (x − μ)/√(σ² + ε) are the same function",
                "refuted",
            ),
        ),
        evidence="gradproof.models.evidence.transformer:sigma_plus_eps",
        right=r"\operatorname{LN}(x) = \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} \cdot \gamma + \beta",
        note="Not the same function as layernorm.forward, which torch uses. Where all entries are equal (v = 0) the"
        " derivative is (u − mean u)/ε; automatic differentiation of √v gives NaN there.",
        note_zh="与 torch 所用的 layernorm.forward 不是同一函数。各分量相等（v = 0）时导数为 (u − mean u)/ε，"
        "对 √v 自动微分在该处给出 NaN。",
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
        r"\bar x = \frac1s\bigl[u - \operatorname{mean}(u)\mathbf{1} - \hat x\,\operatorname{mean}(u \odot \hat"
        r" x)\bigr]",
        LAYERNORM,
        LAYERNORM_SHAPES,
        ("gamma", "beta", "x"),
        "g",
        ("gamma", "beta", "xhat", "x"),
        names={"xhat_bar": "u"},
        evidence="gradproof.models.evidence.transformer:normalised_rows",
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
        absorbed=("c",),
        mode="tangent",
        evidence="gradproof.models.evidence.transformer:two_routes",
        note="The forward route; contracted with u it gives the same x̄ as the backward route.",
        note_zh="前向微分路线；与 u 缩并后得到与反向路线相同的 x̄。",
    )
)

add(
    Entry(
        "layernorm.axes",
        "LayerNorm over features, BatchNorm over the batch",
        "LayerNorm 沿特征，BatchNorm 沿批次",
        "identity",
        "N",
        "proved",
        r"\frac{\partial \operatorname{LN}(X)_{ir}}{\partial X_{js}} = 0 \;(i \ne j),\quad"
        r" \frac{\partial \operatorname{BN}(X)_{ir}}{\partial X_{js}} = 0 \;(r \ne s)",
        normalised(0),
        BATCHNORM_SHAPES,
        ("gamma", "beta", "X"),
        "Y_bar",
        ("gamma", "beta", "xhat", "X"),
        names={"xhat_bar": "u"},
        identities=(
            Identity(
                "layernorm(X, eps=epsilon, axis=0)",
                "layernorm(X.T, eps=epsilon).T",
                {"X": "n,d", "epsilon": ""},
                "BatchNorm is LayerNorm of the transpose",
            ),
        ),
        evidence="gradproof.models.evidence.transformer:normalised_axes",
        note="The derivation shown is BatchNorm's own backward pass, in training mode.",
        note_zh="所示推导为 BatchNorm（训练模式）的反向计算。",
    )
)
