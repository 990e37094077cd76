"""Language models: factorisation, losses, perplexity, causal structure (sources S, S-E1, E7, E8, E12, E22)."""

from gradproof.symbolic.catalogue.entry import Claim, Entry, Identity, add

EVIDENCE = "gradproof.models.evidence.losses:"
OUTPUT = "o = h @ W_O + b_O; "
OUTPUT_SHAPES = {"h": "d", "W_O": "d,N", "b_O": "N"}
# keep_bt = 1 where sequence b has a word t, 0 in the padding
BATCH = "F = log_softmax(o); L = -sum[b,t](keep[b,t]*F[b,t,w[b,t]])/B"
BATCH_SHAPES = {"o": "B,T,N", "w": "B,T:index=N", "keep": "B,T:index=2"}
PERPLEXITY = "F = log_softmax(o); exp(-mean[t](F[t,w[t]]))"
# three conditionals of a model with V words, from any logits
CHAIN = "q_1 = softmax(u); q_2 = softmax(W); q_3 = softmax(Z); "
CHAIN_SHAPES = {"u": "V", "W": "V,V", "Z": "V,V,V"}
# one attention layer on scalar embeddings; position i reads the b positions up to its own
WINDOW = "S[i,j] = where((j <= i) & (i - j < b), a*x[i]*x[j], -inf); A = softmax(S); z = A @ x"
WINDOW_SHAPES = {"x": "n", "a": "", "b": ""}

add(
    Entry(
        "lm.factorisation",
        "A language model as a product of conditionals",
        "语言模型的条件概率分解",
        "identity",
        "S, S-E8",
        "proved",
        r"P(w_{1:T}) = \prod_{t=1}^{T} P(w_t \mid w_{<t})",
        identities=(
            Identity("a[T]/a[0]*(a[T+1]/a[T])", "a[T+1]/a[0]", {"a": "T+2"}, "the step of the induction below"),
            Identity(
                "prod[t=0:T](a[t+1]/a[t])",
                "a[T]/a[0]",
                {"a": "T+1"},
                "with a_t = P(w_1 … w_t), a_0 = 1: the product of conditionals telescopes, for every length T",
            ),
            Identity(
                CHAIN + "sum[a,b,c](q_1[a]*q_2[a,b]*q_3[a,b,c])",
                "1",
                CHAIN_SHAPES,
                "any conditionals give a distribution",
            ),
        ),
        evidence=EVIDENCE + "factorisation",
    )
)

add(
    Entry(
        "lm.next_token",
        "The distribution of the next word",
        "下一个词的分布",
        "gradient",
        "S",
        "proved",
        r"P(w_t = v_i \mid w_{<t}) = \frac{\exp o_i}{\sum_j \exp o_j},\quad o = hW_O + b_O",
        OUTPUT + "P = softmax(o)",
        OUTPUT_SHAPES,
        ("W_O", "b_O", "h"),
        "P_bar",
        ("o", "W_O", "b_O", "h"),
    )
)

add(
    Entry(
        "lm.nll",
        "The loss of one word",
        "单个词的负对数似然",
        "gradient",
        "S",
        "proved",
        r"\mathcal L = -\log P(w_t \mid w_{<t})",
        OUTPUT + "L = -o[w] + logsumexp(o)",
        {**OUTPUT_SHAPES, "w": ":index=N"},
        ("W_O", "b_O", "h"),
        shown=("o", "W_O", "b_O", "h"),
        names={"P": "p"},
    )
)

add(
    Entry(
        "lm.batch_loss",
        "The loss of a batch",
        "批量损失",
        "gradient",
        "S-E1",
        "proved",
        r"\mathcal L_{\mathrm{batch}} = -\frac1B \sum_b \sum_t \log P(w_t^{(b)} \mid w_{<t}^{(b)})",
        BATCH,
        BATCH_SHAPES,
        ("o",),
        form="index",
        evidence=EVIDENCE + "batch_loss",
        note="This is a mean over sequences, not over words: long sequences weigh more. Most programs divide by the"
        " number of words instead. Padding (keep = 0) contributes nothing to loss and gradient.",
        note_zh="这是对序列求平均，而不是对词求平均：长序列权重更大；多数程序改为除以词数。填充位置 (keep = 0)"
        " 对损失与梯度没有贡献。",
    )
)

add(
    Entry(
        "lm.gradient_accumulation",
        "Accumulated micro-batches equal one large batch",
        "梯度累积等价于大批量",
        "identity",
        "S-E1",
        "proved under assumptions",
        r"\sum_m \frac{n_m}{\sum_k n_k}\, g_m = g,\quad g_m = \frac{1}{n_m} \sum_{i \in m} g_i",
        identities=(
            Identity("mean(mean(g, axis=1))", "mean(g)", {"g": "M,b"}, "micro-batches of the same size b"),
            Identity(
                "sum[m](n[m]*(s[m]/n[m]))/sum(n)",
                "sum(s)/sum(n)",
                {"s": "M", "n": "M"},
                "any sizes n_m, each mean s_m/n_m weighted by n_m",
            ),
        ),
        claims=(
            Claim(
                "c*sum(s)/sum(n)",
                {"c": "", "s": "M", "n": "M"},
                "c",
                "mean(s/n)",
                "refuted",
                "equal weights for unequal sizes",
            ),
            Claim(
                "c*sum(s)/sum(n)",
                {"c": "", "s": "M", "n": "M"},
                "c",
                "sum(n*(s/n))/sum(n)",
                "proved",
                "weights n_m/Σn",
            ),
        ),
        evidence=EVIDENCE + "accumulation",
        assumptions=("micro-batches are weighted by what the loss divides by (words, or sequences)",),
        note="With equal weights the two agree only where all micro-batches have the same size.",
        note_zh="等权重只在各小批大小相同时才与大批量一致。",
    )
)

add(
    Entry(
        "lm.perplexity",
        "Perplexity",
        "困惑度",
        "algorithm",
        "S-E7",
        "proved",
        r"\mathrm{PPL} = \exp\Bigl(-\frac1N \sum_i \log P(w_i \mid w_{<i})\Bigr)",
        PERPLEXITY,
        {"o": "T,N", "w": "T:index=N"},
        ("o",),
        form="index",
        identities=(
            Identity(
                "exp(-mean(log(p)))",
                "prod(p)**(-1/n)",
                {"p": "n:simplex"},
                "the inverse geometric mean of the probabilities",
            ),
            Identity("exp(logsumexp(0*o))", "V", {"o": "V"}, "a uniform model over V words"),
        ),
        evidence="gradproof.models.evidence.algorithms:perplexity",
        note="A word of probability 0 makes it infinite; a mean above about 709 overflows float64 and is reported as"
        " infinite.",
        note_zh="出现概率为 0 的词时困惑度为无穷；均值超过约 709 时 float64 溢出，报告为无穷。",
    )
)

add(
    Entry(
        "lm.markov",
        "A Transformer is no n-gram model",
        "Transformer 不是 n-gram 模型",
        "claim",
        "S-E8",
        "proved under assumptions",
        r"P(w_t \mid w_{1:t-1}) \ne P(w_t \mid w_{t-n+1:t-1})",
        claims=(
            Claim(
                "softmax(a*x[3]*x) @ x",
                {"x": "4", "a": ""},
                "x",
                "0*x",
                "refuted",
                "the last of four outputs depends on the first input, beyond every shorter window",
            ),
            Claim(
                "y = x[1:]; softmax(a*y[2]*y) @ y + 0*u[0]",
                {"x": "4", "u": "4", "a": ""},
                "u",
                "0*u",
                "proved",
                "with a window of three it does not",
            ),
        ),
        evidence=EVIDENCE + "markov",
        assumptions=("one layer; with L layers a window of n − 1 reaches L(n − 1) words back",),
        note="Restricting attention to the last n − 1 words makes one layer n-gram-like.",
        note_zh="把注意力限制在最近 n − 1 个词时，单层模型即类似 n-gram。",
    )
)

add(
    Entry(
        "sequence.count",
        "The number of sequences",
        "序列的数目",
        "count",
        "S-E12, S-E14",
        "proved",
        r"|V|^T",
        identities=(
            Identity("V**T*sum(ones(V))", "V**(T+1)", {"x": "T", "y": "V"}, "one more place: V choices"),
            Identity("prod[t=0:T](sum(ones(V)))", "V**T", {"x": "T", "y": "V"}, "T places"),
        ),
        evidence="gradproof.models.evidence.losses:sequences",
    )
)

add(
    Entry(
        "tensor.factorisation",
        "The joint tensor as a product of conditionals",
        "联合概率张量的条件分解",
        "identity",
        "S-E12",
        "corrected",
        r"\mathcal P_{i_1 \dots i_T} \approx \prod_t P(v_{i_t} \mid v_{i_1}, \dots, v_{i_{t-1}})",
        identities=(
            Identity(
                "p_1[a] = sum[b,c](P[a,b,c]); p_2[a,b] = sum[c](P[a,b,c]); T = sum(P); "
                "F[a,b,c] = T*(p_1[a]/T)*(p_2[a,b]/p_1[a])*(P[a,b,c]/p_2[a,b])",
                "P",
                {"P": "n,m,r"},
                "any joint tensor without zero prefixes is the product of its own conditionals, exactly",
            ),
        ),
        claims=(
            Claim(
                "sum[a,b](G[a,b]*P[a,b]/sum(P))",
                {"G": "n,m", "P": "n,m"},
                "G",
                "outer(sum(P, axis=1), sum(P, axis=0))/sum(P)**2",
                "refuted",
                "a decomposition of low rank (here 1), as if the chain rule gave one",
            ),
        ),
        evidence="gradproof.models.evidence.losses:tensor_rank",
        right=r"\mathcal P_{i_1 \dots i_T} = \prod_t P(v_{i_t} \mid v_{i_1}, \dots, v_{i_{t-1}})",
        note="The document writes ≈ and calls this a low-rank decomposition. The chain rule is exact and loses no rank;"
        " what is approximate is that all conditionals share one set of parameters.",
        note_zh="文中写“≈”并称之为低秩分解。链式分解是精确的，不损失秩；近似之处在于所有条件概率共用一组参数。",
    )
)

add(
    Entry(
        "causal.factorisation",
        "The autoregressive graph",
        "自回归图模型",
        "identity",
        "S-E8, S-E22",
        "proved",
        r"P(w_{1:T}) = \prod_t P(w_t \mid w_{1:t-1})",
        identities=(
            Identity(
                CHAIN + "F[a,b] = sum[c](q_1[a]*q_2[a,b]*q_3[a,b,c])",
                CHAIN + "F[a,b] = q_1[a]*q_2[a,b]",
                CHAIN_SHAPES,
                "summing over a later word leaves the factors of the earlier ones",
            ),
        ),
        evidence=EVIDENCE + "factorisation",
        note="Every word has all its predecessors as parents, so the graph claims no independence.",
        note_zh="每个词以其之前的所有词为父节点，因此该图不蕴含任何独立性。",
    )
)

add(
    Entry(
        "causal.do",
        "An intervention leaves the past alone",
        "干预不改变过去",
        "identity",
        "S-E22",
        "proved",
        r"P(w_{1:T} \mid \mathrm{do}(w_t = v)) = \mathbf 1[w_t = v] \prod_{s \ne t} P(w_s \mid w_{<s})",
        identities=(
            Identity(
                CHAIN + "F[a] = sum[c](q_1[a]*q_3[a,v,c])",
                CHAIN + "F[a] = q_1[a]",
                {**CHAIN_SHAPES, "v": ":index=V"},
                "the first word's distribution under do(w_2 = v) is the one without it",
            ),
        ),
        claims=(
            Claim(
                CHAIN + "sum[a](G[a]*q_1[a]*q_2[a,v])/sum[a](q_1[a]*q_2[a,v])",
                {**CHAIN_SHAPES, "v": ":index=V", "G": "V"},
                "G",
                "softmax(u)",
                "refuted",
                "conditioning on w_2 = v instead does change the past",
            ),
        ),
        evidence="gradproof.models.evidence.losses:intervention",
    )
)
