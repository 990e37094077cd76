"""Multi-head attention (sources N, S): the heads are the first axis of every projection."""

from gradproof.symbolic.catalogue.attention import WEIGHTS
from gradproof.symbolic.catalogue.entry import Entry, Identity, add

HEAD = "q = Q @ W_Q; k = K @ W_K; v = V @ W_V; " + WEIGHTS.replace("Q @ K.T", "q @ k.T") + "H = A @ v"
HEAD_SHAPES = {"Q": "n,d", "K": "m,d", "V": "m,d", "W_Q": "d,d_k", "W_K": "d,d_k", "W_V": "d,d_v"}


def heads(queries: str, keys: str) -> str:
    """All heads at once, with queries from one array and keys and values from another; their outputs are H."""
    return (
        f"Q[a,i,r] = sum[k]({queries}[i,k]*W_Q[a,k,r]); "
        f"K[a,i,r] = sum[k]({keys}[i,k]*W_K[a,k,r]); "
        f"V[a,i,r] = sum[k]({keys}[i,k]*W_V[a,k,r]); "
        "S = Q @ K.mT / sqrt(d_k); A = softmax(S); H = A @ V; "
    )


# Concat(head_1 … head_h) W^O: the rows of W^O in blocks, one block W_O[a] for each head
JOINED = "einsum('hir,hrk->ik', H, W_O)"
MHA = heads("X", "Y") + f"O = {JOINED}"
MHA_SHAPES = {
    "X": "n,d",
    "Y": "m,d",
    "W_Q": "h,d,d_k",
    "W_K": "h,d,d_k",
    "W_V": "h,d,d_v",
    "W_O": "h,d_v,d",
}
MHA_PARAMETERS = ("W_O", "W_Q", "W_K", "W_V")

add(
    Entry(
        "mha.head",
        "One attention head",
        "单个注意力头",
        "gradient",
        "N, S-E2",
        "proved",
        r"\text{head}_i = \operatorname{Attention}(QW_i^Q, KW_i^K, VW_i^V)",
        HEAD,
        HEAD_SHAPES,
        ("W_Q", "W_K", "W_V", "Q", "K", "V"),
        "H_bar",
        ("v", "A", "S", "q", "k", "W_Q", "W_K", "W_V", "Q", "K", "V"),
    )
)

add(
    Entry(
        "mha.output",
        "Multi-head attention",
        "多头注意力",
        "gradient",
        "N, S-E2",
        "proved",
        r"\operatorname{MultiHead} = \operatorname{Concat}(\text{head}_1, \ldots, \text{head}_h) W^O",
        MHA,
        MHA_SHAPES,
        (*MHA_PARAMETERS, "X", "Y"),
        "O_bar",
        ("W_O", "H", "A", "S", "V", "Q", "K", "W_Q", "W_K", "W_V", "X", "Y"),
        form="index",
        identities=(
            Identity(
                "vec(H.T) @ vec(W.T)",
                "sum[a](sum[r](H[a,r]*W[a,r]))",
                {"H": "h,d_v", "W": "h,d_v"},
                "one position, one column: concatenated heads times W^O is Σ_i head_i W_i^O",
            ),
            Identity(
                JOINED,
                "F[i,k] = sum[a](sum[r](H[a,i,r]*W_O[a,r,k]))",
                {"H": "h,n,d_v", "W_O": "h,d_v,d"},
                "all positions and columns",
            ),
        ),
        note="X gives the queries, Y keys and values; for self-attention they are one array and their gradients add up."
        " W_i^O is the i-th block of d_v rows of W^O.",
        note_zh="X 给出查询，Y 给出键与值；自注意力中二者相同，梯度相加。W_i^O 是 W^O 的第 i 个 d_v 行的块。",
    )
)

add(
    Entry(
        "mha.parameters",
        "Parameters of multi-head attention",
        "多头注意力的参数量",
        "count",
        "N",
        "proved under assumptions",
        r"4 d_{\text{model}}^2",
        evidence="gradproof.models.evidence.counts:mha_parameters",
        assumptions=("d_k = d_v = d_model/h", "no biases"),
        note="The same for every number of heads. torch's default has 4 d_model more for biases.",
        note_zh="与头数无关。torch 默认带偏置，多 4 d_model 个参数。",
    )
)

add(
    Entry(
        "mha.flops",
        "Operations of multi-head attention",
        "多头注意力的计算量",
        "count",
        "N",
        "proved under assumptions",
        r"h \cdot O(n^2 d_k) = O(n^2 d_{\text{model}})",
        evidence="gradproof.models.evidence.counts:mha_flops",
        assumptions=("d_k = d_v = d_model/h",),
        note="Exactly 4n²d_model for scores and mixing, whatever the number of heads; the projections add 8n d_model².",
        note_zh="分数与加权求和恰为 4n²d_model 次，与头数无关；投影另需 8n d_model² 次。",
    )
)
