"""Sequence to sequence with attention (source N)."""

from gradproof.symbolic.catalogue.entry import Entry, Identity, add

# B pairs of sentences; x holds the source words, w the words that the decoder reads (y shifted by one), y the targets.
ENCODER = (
    "h[0,b,k] = h_0[b,k]; "
    "z[t,b,k] = sum[l](W_h[k,l]*h[t,b,l]) + sum[r](W_x[k,r]*F[x[b,t],r]) + b_h[k]; "
    "h[t+1,b,k] = sigma(z[t,b,k]); c = (1*h)[m]"
)
ENCODER_SHAPES = {"h_0": "B,d", "W_h": "d,d", "W_x": "d,e", "b_h": "d", "F": "U,e", "x": "B,m:index=U"}
DECODER = (
    "s[0,b,k] = c[b,k]; "
    "u[t,b,k] = sum[l](W_s[k,l]*s[t,b,l]) + sum[r](W_y[k,r]*E[w[b,t],r]) + sum[l](W_c[k,l]*c[b,l]) + b_s[k]; "
    "s[t+1,b,k] = sigma(u[t,b,k])"
)
DECODER_SHAPES = {"W_s": "d,d", "W_y": "d,e", "W_c": "d,d", "b_s": "d", "E": "V,e", "w": "B,T:index=V"}
OUTPUT = "o = s @ W_o.T; P = softmax(o)"
LOSS = "o = (1*s)[1:] @ W_o.T; F_log = log_softmax(o); L = -sum[t,b](F_log[t,b,y[b,t]])"
ENCODER_PARAMETERS = ("W_h", "W_x", "b_h", "h_0", "F")
DECODER_PARAMETERS = ("W_s", "W_y", "W_c", "b_s", "E")
# attention from one decoder state s to the encoder states, the columns of H
SCORE_SHAPES = {"s": "d", "H": "d,n"}
DOT = "e = H.T @ s"
SCALED = "e = H.T @ s / sqrt(d)"
ADDITIVE = "B = W_1 @ H + (W_2 @ s)[:, None]; C = tanh(B); e = v @ C"
ADDITIVE_SHAPES = {**SCORE_SHAPES, "W_1": "d_a,d", "W_2": "d_a,d", "v": "d_a"}
CONTEXT = "a = H @ alpha"
READOUT = "c[k] = a[k]; c[d+k] = s[k]; B = W_c @ c; y = tanh(B)"
READOUT_SHAPES = {"W_c": "d,2*d", "a": "d", "s": "d"}

add(
    Entry(
        "seq2seq.chain_rule",
        "A conditional language model factorises",
        "条件语言模型的链式分解",
        "identity",
        "N, S",
        "proved under assumptions",
        r"P(y \mid x) = \prod_t P(y_t \mid y_{<t}, x)",
        identities=(
            Identity(
                "m_2[a,b] = sum[c](J[a,b,c]); m_1[a] = sum[b](m_2[a,b]); "
                "F[a,b,c] = m_1[a] * (m_2[a,b]/m_1[a]) * (J[a,b,c]/m_2[a,b])",
                "F[a,b,c] = J[a,b,c]",
                {"J": "V,V,V"},
                "any joint table is the product of its conditionals (three words)",
            ),
            Identity(
                "sum[a,b,c](p[a] * q[a,b] * r[a,b,c])",
                "1",
                {"p": "V:simplex", "q": "V,V:simplex", "r": "V,V,V:simplex"},
                "any product of conditionals sums to 1 over all sequences (three words)",
            ),
        ),
        evidence="gradproof.models.evidence.sequences:total_probability",
        assumptions=("every prefix has a positive probability",),
    )
)

add(
    Entry(
        "seq2seq.encoder",
        "The encoder: its last state is the context",
        "编码器：最后的隐状态即上下文向量",
        "gradient",
        "N",
        "proved",
        r"c = h_m = f_{\text{enc}}(x_1, \ldots, x_m)",
        ENCODER,
        ENCODER_SHAPES,
        ENCODER_PARAMETERS,
        "c_bar",
        ("h", "z", *ENCODER_PARAMETERS),
        form="index",
        note="B pairs at once; F holds the source embeddings.",
        note_zh="同时处理 B 个句对；F 为源语言嵌入。",
    )
)

add(
    Entry(
        "seq2seq.decoder",
        "The decoder",
        "解码器",
        "gradient",
        "N",
        "proved",
        r"s_t = f_{\text{dec}}(s_{t-1}, y_{t-1}, c)",
        DECODER,
        {"c": "B,d", **DECODER_SHAPES},
        (*DECODER_PARAMETERS, "c"),
        "G",
        ("s", "u", *DECODER_PARAMETERS, "c"),
        form="index",
        note="w holds the previous words y_{t−1}; the decoder starts from s_0 = c and reads c at every step, so c̄ has"
        " both contributions. G is the gradient of the loss with respect to every state, taken directly.",
        note_zh="w 为前一个词 y_{t−1}；解码器从 s_0 = c 出发并在每一步读取 c，故 c̄ 含两部分。G"
        " 是损失对各状态的直接梯度。",
    )
)

add(
    Entry(
        "seq2seq.output",
        "The probability of each target word",
        "各目标词的概率",
        "gradient",
        "N",
        "proved",
        r"P(y_t \mid y_{<t}, x) = \operatorname{softmax}(W_o s_t)[y_t]",
        OUTPUT + "; p[t] = P[t,y[t]]",
        {"s": "T,d", "W_o": "V,d", "y": "T:index=V"},
        ("W_o", "s"),
        "p_bar",
        ("o", "W_o", "s"),
    )
)

add(
    Entry(
        "seq2seq.loss",
        "The training loss and every gradient of the model",
        "训练损失与全部参数的梯度",
        "gradient",
        "N",
        "proved",
        r"\mathcal{L} = \sum_{(x,y)} \sum_t \log P(y_t \mid y_{<t}, x)",
        f"{ENCODER}; {DECODER}; {LOSS}",
        {**ENCODER_SHAPES, **DECODER_SHAPES, "W_o": "V,d", "y": "B,T:index=V"},
        ("W_o", *DECODER_PARAMETERS, *ENCODER_PARAMETERS),
        shown=("o", "s", "u", "c", "h", "z", "W_o", *DECODER_PARAMETERS, *ENCODER_PARAMETERS),
        form="index",
        note="The document maximises the log-likelihood; L is its negative, which is minimised. All pairs of a batch"
        " have one length here; padding is treated under lm.batch_loss.",
        note_zh="文中最大化对数似然；L 为其相反数，取最小。此处一批句对长度相同；填充见 lm.batch_loss。",
    )
)

add(
    Entry(
        "decode.argmax",
        "The most probable translation: greedy and beam search",
        "最可能的译文：贪心与束搜索",
        "algorithm",
        "N, S",
        "counterexample",
        r"\hat y = \arg\max_y P(y \mid x)",
        identities=(
            Identity(
                "F = softmax(a); G = softmax(b); where(prod[t](F[t,u[t]]) < prod[t](G[t,w[t]]), 1, 0)",
                "F = log_softmax(a); G = log_softmax(b); where(sum[t](F[t,u[t]]) < sum[t](G[t,w[t]]), 1, 0)",
                {"a": "T,V", "b": "T,V", "u": "T:index=V", "w": "T:index=V"},
                "one sequence is less probable than another just where its log-probability is lower",
            ),
            Identity(
                "P = softmax(z); F[i,j] = where(P[i] < P[j], 1, 0)",
                "F[i,j] = where(z[i] < z[j], 1, 0)",
                {"z": "V"},
                "the most probable next word is the one with the largest logit",
            ),
        ),
        evidence="gradproof.models.evidence.sequences:argmax",
        right=r"\log P(\hat y_{\text{greedy}} \mid x) \le \max_y \log P(y \mid x) \text{, equal for a"
        r" beam of width } V^T",
        note="Neither greedy nor beam search is guaranteed to find it, and a beam need not even score as well as"
        " greedy;"
        " a beam that keeps all V^T prefixes is brute force.",
        note_zh="贪心与束搜索都不保证找到最优序列，束搜索的得分甚至可能低于贪心；保留全部 V^T 个前缀的束即穷举。",
    )
)

for identifier, title, title_zh, statement, expression in (
    ("attention.score_dot", "Dot-product score", "点积注意力分数", r"e_i = s_t^\top h_i", DOT),
    (
        "attention.score_scaled",
        "Scaled dot-product score",
        "缩放点积注意力分数",
        r"e_i = s_t^\top h_i / \sqrt{d}",
        SCALED,
    ),
):
    add(
        Entry(
            identifier,
            title,
            title_zh,
            "gradient",
            "N",
            "proved",
            statement,
            expression,
            SCORE_SHAPES,
            ("s", "H"),
            "e_bar",
            ("s", "H"),
            note="The encoder states h_i are the columns of H.",
            note_zh="编码器状态 h_i 是 H 的列。",
        )
    )

add(
    Entry(
        "attention.score_additive",
        "Additive score",
        "加性注意力分数",
        "gradient",
        "N",
        "proved",
        r"e_i = v^\top \tanh(W_1 h_i + W_2 s_t)",
        ADDITIVE,
        ADDITIVE_SHAPES,
        ("v", "W_1", "W_2", "s", "H"),
        "e_bar",
        ("v", "C", "B", "W_1", "W_2", "s", "H"),
    )
)

add(
    Entry(
        "attention.score_variants",
        "The three scores are different functions",
        "三种注意力分数是不同的函数",
        "claim",
        "N",
        "counterexample",
        r"\text{dot, scaled and additive scores are equivalent}",
        identities=(
            Identity(DOT, SCALED, SCORE_SHAPES, "dot and scaled scores are the same", "refuted"),
            Identity(DOT, ADDITIVE, ADDITIVE_SHAPES, "dot and additive scores are the same", "refuted"),
            Identity(
                f"{DOT}; softmax(e)",
                f"{SCALED}; softmax(e)",
                SCORE_SHAPES,
                "dot and scaled scores give the same weights",
                "refuted",
            ),
            Identity(f"{DOT}; e / sqrt(d)", SCALED, SCORE_SHAPES, "the scaled score is the dot score divided by √d"),
        ),
        evidence="gradproof.models.evidence.attention:score_variants",
        right=r"s^\top h,\ s^\top h/\sqrt d,\ v^\top \tanh(W_1 h + W_2 s) \text{ have } 0,\ 0,\ 2 d d_a"
        r" + d_a \text{ parameters}",
        note="They order the positions alike only in the first two cases. The additive score has 2·d·d_a + d_a"
        " parameters,"
        " the other two have none.",
        note_zh="只有前两者给出相同的位置次序。加性分数有 2·d·d_a + d_a 个参数，另两种没有参数。",
    )
)

add(
    Entry(
        "attention.weights",
        "Attention weights are a distribution",
        "注意力权重是概率分布",
        "identity",
        "N",
        "proved",
        r"\alpha = \operatorname{softmax}(e),\quad \sum_i \alpha_i = 1,\quad \alpha_i \ge 0",
        identities=(
            Identity("sum(softmax(e))", "1", {"e": "n"}, "the weights sum to 1"),
            Identity("softmax(e)", "exp(e) / sum(exp(e))", {"e": "n"}, "the definition"),
            Identity(
                "softmax(e)", "exp(e/2)**2 / sum(exp(e/2)**2)", {"e": "n"}, "a square over a sum of squares: α_i ≥ 0"
            ),
        ),
    )
)

add(
    Entry(
        "attention.context",
        "The context vector",
        "上下文向量",
        "gradient",
        "N",
        "proved",
        r"a_t = \sum_i \alpha_i h_i = H\alpha",
        CONTEXT,
        {"H": "d,n", "alpha": "n"},
        ("alpha", "H"),
        "a_bar",
        ("alpha", "H"),
        identities=(
            Identity(
                CONTEXT, "a[k] = sum[i](alpha[i]*H[k,i])", {"H": "d,n", "alpha": "n"}, "the sum is the product Hα"
            ),
        ),
    )
)

add(
    Entry(
        "attention.readout",
        "The attentional state",
        "注意力输出状态",
        "gradient",
        "N",
        "proved",
        r"\tilde s_t = \tanh(W_c [a_t; s_t])",
        READOUT,
        READOUT_SHAPES,
        ("W_c", "a", "s"),
        "y_bar",
        ("B", "c", "W_c", "a", "s"),
        identities=(
            Identity(
                "c[k] = a[k]; c[d+k] = s[k]; W_c @ c",
                "W_c[:, :d] @ a + W_c[:, d:] @ s",
                READOUT_SHAPES,
                "concatenation is the sum of two products with the blocks of W_c",
            ),
        ),
        note="c is the concatenation [a; s].",
        note_zh="c 是拼接 [a; s]。",
    )
)
