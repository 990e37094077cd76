"""Embeddings and positions (sources N, S, C15)."""

from gradproof.symbolic.catalogue.entry import Entry, Identity, add

LOOKUP = "X[t,k] = E[w[t],k]"
LOOKUP_SHAPES = {"E": "N,d", "w": "n:index=N"}
# d = 2·p: the i-th pair of coordinates turns with the frequency ω_i
FREQUENCY = "omega[i] = 10000**(-2*i/(2*p)) * ones(p)[i]; "
ROTATION = (
    "R[t,r,c] = sum[i](cos(pos[t]*omega[i])*(delta(r, 2*i)*delta(c, 2*i) + delta(r, 2*i+1)*delta(c, 2*i+1))"
    " + sin(pos[t]*omega[i])*(delta(r, 2*i+1)*delta(c, 2*i) - delta(r, 2*i)*delta(c, 2*i+1)))"
    "*ones(2*p)[r]*ones(2*p)[c]"
)
ROTATION_SHAPES = {"pos": "n", "omega": "p"}
SHIFT_SHAPES = {"pos": "", "k": "", "omega": "p"}


def turned(vector: str, angle: str) -> tuple[str, str]:
    """The two entries of R(angle) times the i-th pair of a vector of shape (p, 2)."""
    first, second = f"{vector}[i,0]", f"{vector}[i,1]"
    return f"(cos({angle})*{first} - sin({angle})*{second})", f"(sin({angle})*{first} + cos({angle})*{second})"


_Q, _K, _RELATIVE = turned("q", "a*omega[i]"), turned("k", "b*omega[i]"), turned("k", "(b - a)*omega[i]")

add(
    Entry(
        "embedding.lookup",
        "Looking up embeddings",
        "嵌入查表",
        "gradient",
        "C15.3, S",
        "proved",
        r"x_t = E_{w_t}",
        LOOKUP,
        LOOKUP_SHAPES,
        ("E",),
        "X_bar",
        ("E",),
        form="index",
        evidence="gradproof.models.evidence.transformer:lookup",
        note="A row receives the sum over all positions that read it; a row that none reads receives 0.",
        note_zh="某一行收到所有读取它的位置的梯度之和；未被读取的行梯度为 0。",
    )
)

add(
    Entry(
        "embedding.position_sum",
        "Embedding plus position",
        "嵌入与位置编码相加",
        "gradient",
        "S",
        "proved",
        r"h_i = x_i + p_i",
        f"{LOOKUP}; h = X + P",
        {**LOOKUP_SHAPES, "P": "n,d"},
        ("E", "P"),
        "h_bar",
        ("E", "P"),
        form="index",
        note="Learned positions P have a gradient; sinusoidal ones are constants.",
        note_zh="可学习的位置编码 P 有梯度；正弦编码为常量。",
    )
)

add(
    Entry(
        "position.sinusoidal",
        "Sinusoidal positions",
        "正弦位置编码",
        "identity",
        "N, S-E3",
        "proved under assumptions",
        r"PE_{(pos,2i)} = \sin(pos\,\omega_i),\; PE_{(pos,2i+1)} = \cos(pos\,\omega_i),\; \omega_i = 10000^{-2i/d}",
        identities=tuple(
            Identity(
                f"F[t,i] = {f}(pos[t]/10000**(2*i/(2*p))) * ones(p)[i]",
                FREQUENCY + f"F[t,i] = {f}(pos[t]*omega[i])",
                {"pos": "n", "x": "2*p"},
                f"the two spellings of the {word}",
            )
            for f, word in (("sin", "sine"), ("cos", "cosine"))
        ),
        evidence="gradproof.models.evidence.transformer:sinusoid",
        assumptions=("d is even; an odd d is an error",),
    )
)

add(
    Entry(
        "position.unique",
        "Different positions have different encodings",
        "不同位置的编码两两不同",
        "identity",
        "N",
        "proved",
        r"p \ne q \;\Rightarrow\; PE_p \ne PE_q",
        identities=(
            Identity(
                "(sin(p) - sin(q))**2 + (cos(p) - cos(q))**2",
                "2 - 2*cos(p - q)",
                {"p": "", "q": ""},
                "the squared distance in the first pair, where ω_0 = 1",
            ),
        ),
        evidence="gradproof.models.evidence.transformer:unique_positions",
        note="It is 0 only if p − q is a multiple of 2π. A whole multiple of 2π is no whole number other than 0,"
        " since π is irrational.",
        note_zh="只有 p − q 是 2π 的整数倍时为 0；π 是无理数，故非零整数不可能是 2π 的整数倍。",
    )
)

add(
    Entry(
        "position.shift",
        "A shift of positions is a linear map",
        "位置平移是线性变换",
        "identity",
        "N",
        "proved",
        r"PE_{pos+k} = M(k)\,PE_{pos},\quad M = \begin{bmatrix} \cos k\omega & \sin k\omega \\ -\sin k\omega & \cos"
        r" k\omega \end{bmatrix}",
        identities=(
            Identity(
                "F[i] = sin((pos + k)*omega[i])",
                "F[i] = cos(k*omega[i])*sin(pos*omega[i]) + sin(k*omega[i])*cos(pos*omega[i])",
                SHIFT_SHAPES,
                "first row",
            ),
            Identity(
                "F[i] = cos((pos + k)*omega[i])",
                "F[i] = -sin(k*omega[i])*sin(pos*omega[i]) + cos(k*omega[i])*cos(pos*omega[i])",
                SHIFT_SHAPES,
                "second row",
            ),
        ),
        note="M(k) is R(kω)ᵀ in the notation of rope.rotation; it does not depend on pos.",
        note_zh="M(k) 即 rope.rotation 记号下的 R(kω)ᵀ，与 pos 无关。",
    )
)

add(
    Entry(
        "position.frequencies",
        "The frequencies fall geometrically",
        "频率按几何级数下降",
        "identity",
        "N",
        "proved",
        r"\omega_{i+1}/\omega_i = 10000^{-2/d},\quad \text{wavelengths } 2\pi \ldots 2\pi \cdot 10000^{(d-2)/d}",
        identities=(
            Identity(
                "10000**(-2*(i+1)/d) / 10000**(-2*i/d)", "10000**(-2/d)", {"i": "", "d": ""}, "the ratio of neighbours"
            ),
            Identity("2*pi / 10000**(-2*0/d)", "2*pi", {"d": ""}, "the shortest wavelength, i = 0"),
            Identity(
                "2*pi / 10000**(-2*(d/2 - 1)/d)", "2*pi*10000**((d - 2)/d)", {"d": ""}, "the longest, i = d/2 − 1"
            ),
        ),
    )
)

add(
    Entry(
        "rope.rotation",
        "Rotary positions",
        "旋转位置编码",
        "gradient",
        "C15.6, S-E3",
        "proved",
        r"\tilde q_i = R_i q_i",
        f"{ROTATION}; y[t,r] = sum[c](R[t,r,c]*q[t,c])",
        {"q": "n,2*p", **ROTATION_SHAPES},
        ("q",),
        "y_bar",
        ("q",),
        form="index",
        identities=(
            Identity(
                f"{ROTATION}; F[t,r,c] = R[t,c,r]",
                ROTATION.replace("pos[t]", "(-pos[t])"),
                ROTATION_SHAPES,
                "the transpose is the rotation by −θ",
            ),
            Identity(
                f"{ROTATION}; F[t,r,c] = sum[k](R[t,k,r]*R[t,k,c])",
                "F[t,r,c] = delta(r, c)*ones(2*p)[r]*ones(2*p)[c]*cos(0*pos[t])",
                ROTATION_SHAPES,
                "RᵀR = I: lengths are kept",
            ),
        ),
        note="R_t has 2×2 blocks with the angles t·ω_i, for any even d = 2p; the gradient is q̄ = R_tᵀȳ, rotation by"
        " −θ.",
        note_zh="R_t 由角度 t·ω_i 的 2×2 块组成，d = 2p 为任意偶数；梯度为 q̄ = R_tᵀȳ，即旋转 −θ。",
    )
)

add(
    Entry(
        "rope.relative",
        "Rotary scores depend on the relative position",
        "旋转编码的分数只依赖相对位置",
        "identity",
        "C15.6, S-E3",
        "proved",
        r"\tilde q_i^\top \tilde k_j = q_i^\top R((j-i)\omega)\, k_j",
        identities=(
            Identity(
                f"sum[i]({_Q[0]}*{_K[0]} + {_Q[1]}*{_K[1]})",
                f"sum[i](q[i,0]*{_RELATIVE[0]} + q[i,1]*{_RELATIVE[1]})",
                {"q": "p,2", "k": "p,2", "omega": "p", "a": "", "b": ""},
                "query at position a, key at position b",
            ),
        ),
        note="Vectors are columns here; with rows the rotations are transposed.",
        note_zh="此处用列向量；换成行向量时旋转矩阵相应转置。",
    )
)
