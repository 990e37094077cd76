"""Inference: decoding, the key–value cache, quantisation, BLEU (sources S, S-E6, S-E7, S-E14)."""

from gradproof.symbolic.catalogue.attention import PROJECTIONS
from gradproof.symbolic.catalogue.entry import Claim, Entry, Identity, add

EVIDENCE = "gradproof.models.evidence.algorithms:"
PROJECTED = {"X": "n+1,d", "W_Q": "d,d_k", "W_K": "d,d_k", "W_V": "d,d_v"}
# attention of the last of n+1 positions, from all of X or from the cached keys and values of the first n
WHOLE = PROJECTIONS + "softmax(Q[n] @ K.T / sqrt(d_k)) @ V"
CACHED = (
    "K_c = X[:-1] @ W_K; V_c = X[:-1] @ W_V; q = X[n] @ W_Q; k = X[n] @ W_K; v = X[n] @ W_V; "
    "e = exp(K_c @ q / sqrt(d_k)); f = exp(k @ q / sqrt(d_k)); (e @ V_c + f*v)/(sum(e) + f)"
)
# u is x on the scale of the levels 0 … m = 2ⁿ − 1, q a level
SCALED = "m = 2**n - 1; u = (x - low)/(high - low)*m; "
BACK = "q/m*(high - low) + low"
RANGE = {name: "" for name in ("x", "q", "low", "high")} | {"bits": "n"}

add(
    Entry(
        "decode.autoregressive",
        "Generating text word by word",
        "自回归生成",
        "algorithm",
        "S",
        "proved",
        r"w_t \sim P(\cdot \mid w_{<t}),\quad \text{append, repeat until the end token or the limit}",
        evidence=EVIDENCE + "autoregressive",
    )
)

add(
    Entry(
        "decode.greedy",
        "Greedy search",
        "贪婪搜索",
        "algorithm",
        "S",
        "proved",
        r"w_t = \arg\max_w P(w \mid w_{<t})",
        evidence=EVIDENCE + "greedy_search",
        note="Among equally probable words the one of lowest index is taken.",
        note_zh="概率相同时取编号最小的词。",
    )
)

add(
    Entry(
        "decode.top_p",
        "Top-p (nucleus) sampling",
        "核采样 (Top-p)",
        "algorithm",
        "S",
        "corrected",
        r"\min\Bigl\{k : \sum_{i \le k} p_{(i)} > p\Bigr\}",
        claims=(
            Claim(
                "c*(1 + (0.4 < 0.7) + (0.4 + 0.3 < 0.7))",
                {"c": ""},
                "c",
                "1 + (0.4 <= 0.7) + (0.4 + 0.3 <= 0.7)",
                "refuted",
                "words kept of (.4, .3, .2, .1) at p = .7, with “exceeds” as the document has it: 3",
            ),
            Claim(
                "c*(1 + (0.4 < 0.7) + (0.4 + 0.3 < 0.7))",
                {"c": ""},
                "c",
                "2",
                "proved",
                "with “reaches”: a word is kept as long as those before it add up to less than p",
            ),
        ),
        evidence=EVIDENCE + "top_p",
        right=r"\min\Bigl\{k : \sum_{i \le k} p_{(i)} \ge p\Bigr\}",
        note="The document says that the sum exceeds p; the usual rule, and ours, is that it reaches p. p = 0 keeps the"
        " best word, p = 1 all; ties go to the lowest index; a seed fixes the draw.",
        note_zh="文中说累积概率“超过”p；通常的规则（也是这里采用的）是“达到”p。p = 0 只保留最优词，p = 1 保留全部；"
        "并列时取编号最小者；给定种子结果可复现。",
    )
)

add(
    Entry(
        "decode.beam",
        "Beam search",
        "束搜索",
        "algorithm",
        "S-E14",
        "proved",
        r"B_{t+1} = \arg\max_{|S| = k} \{P(w_{1:t+1}) : w_{1:t} \in B_t,\, w_{t+1} \in V\}",
        evidence=EVIDENCE + "beam",
        note="A beam as wide as the number of sequences finds the best one. A wider beam is not always better. Finished"
        " hypotheses compete by log-probability over length**alpha.",
        note_zh="束宽等于序列总数时得到最优解；更宽的束并不总是更好。已结束的假设按对数概率除以长度的 alpha 次方竞争。",
    )
)

add(
    Entry(
        "kv_cache.equality",
        "Cached keys and values give the same output",
        "键值缓存不改变输出",
        "identity",
        "S-E6",
        "proved",
        r"K_{1:t} = [K_{1:t-1},\, K_t],\quad V_{1:t} = [V_{1:t-1},\, V_t]",
        identities=(
            Identity(WHOLE, CACHED, PROJECTED, "attention of the newest position, whole and from the cache"),
            Identity(
                "K = X @ W_K; K[:n]",
                "X[:-1] @ W_K",
                {"X": "n+1,d", "W_K": "d,d_k"},
                "the first n keys do not depend on the newest position",
            ),
        ),
        evidence="gradproof.models.evidence.inference:cache",
        note="Under a causal mask the earlier positions do not change either. With RoPE or sinusoids the newest"
        " position must be given its own number t, not 0.",
        note_zh="在因果掩码下之前位置的输出也不变。使用 RoPE 或正弦编码时，新位置必须使用其真实编号 t，而不是 0。",
    )
)

add(
    Entry(
        "kv_cache.cost",
        "The cost of one step and of a sequence, with and without a cache",
        "有无键值缓存时每步与整段的计算量",
        "count",
        "S-E6",
        "proved",
        r"O(t^2) \to O(t) \text{ per step},\quad O(T^3) \to O(T^2) \text{ for the sequence}",
        identities=(
            Identity(
                "sum[t=0:T](4*d*(t+1)**2)",
                "4*d*(T*(T+1)*(2*T+1)/6)",
                {"x": "T", "y": "d"},
                "scores and mixtures of all t + 1 positions at every step: operations for T words without a cache",
            ),
            Identity(
                "sum[t=0:T](4*d*(t+1))",
                "2*d*T*(T+1)",
                {"x": "T", "y": "d"},
                "of the newest position only: operations with a cache",
            ),
        ),
        evidence="gradproof.models.evidence.inference:cache_cost",
        note="One step falls from O(t²) to O(t) operations, a whole sequence of T words from O(T³) to O(T²). (A"
        " multiply and an add count as two; the projections fall from t + 1 rows to one.)",
        note_zh="每步由 O(t²) 降为 O(t)，整段 T 个词由 O(T³) 降为 O(T²)。（一次乘加计 2 次运算；投影由 t + 1 行降为"
        " 1 行。）",
    )
)

add(
    Entry(
        "quantisation.linear",
        "Linear quantisation",
        "线性量化",
        "algorithm",
        "S-E6",
        "proved under assumptions",
        r"q = \operatorname{round}\Bigl(\frac{x - \min}{\max - \min}\,(2^n - 1)\Bigr)",
        evidence=EVIDENCE + "quantisation",
        assumptions=("max > min; for a constant tensor, which the document leaves undefined, every code is 0",),
        note="For max = min the document divides by 0. Here every code is 0 then, and the constant comes back exactly.",
        note_zh="max = min 时文中公式除以 0；这里规定所有编码为 0，常数张量可精确还原。",
    )
)

add(
    Entry(
        "quantisation.inverse",
        "Dequantisation is exact on the grid",
        "反量化在格点上精确",
        "identity",
        "S-E6",
        "proved",
        r"x = \frac{q}{2^n - 1}\,(\max - \min) + \min",
        identities=(
            Identity(
                f"m = 2**n - 1; y = {BACK}; (y - low)/(high - low)*m",
                "q",
                RANGE,
                "the level of a value on the grid is the level that it came from",
            ),
            Identity(SCALED + "u/m*(high - low) + low", "x", RANGE, "without rounding the two maps are inverse"),
        ),
        evidence=EVIDENCE + "grid",
    )
)

add(
    Entry(
        "quantisation.error",
        "The error of quantisation",
        "量化误差",
        "bound",
        "S-E6",
        "proved",
        r"|x - \hat x| \le \frac{\max - \min}{2\,(2^n - 1)}",
        identities=(
            Identity(
                SCALED + f"x - ({BACK})",
                SCALED + "(u - q)*(high - low)/m",
                RANGE,
                "the error is the rounding error u − q times the step; rounding to the nearest level makes |u − q| ≤ ½",
            ),
        ),
        evidence=EVIDENCE + "quantisation_error",
    )
)

add(
    Entry(
        "metric.bleu",
        "BLEU",
        "BLEU 分数",
        "algorithm",
        "S-E7",
        "proved",
        r"\mathrm{BLEU} = BP \cdot \exp\Bigl(\sum_{n=1}^{N} w_n \log p_n\Bigr)",
        identities=(
            Identity(
                "p = exp(a); exp(sum(w*log(p)))",
                "p = exp(a); prod(p**w)",
                {"a": "N", "w": "N"},
                "the weighted geometric mean of the precisions, where all are positive",
            ),
        ),
        evidence=EVIDENCE + "bleu_scores",
        note="Over a whole corpus. BP = 1 if c > r, else exp(1 − r/c). A zero count makes it 0; sacrebleu's scale is"
        " 100.",
        note_zh="按整个语料计算。c > r 时 BP = 1，否则为 exp(1 − r/c)。任一计数为零则得 0；sacrebleu 的分数乘以 100。",
    )
)
