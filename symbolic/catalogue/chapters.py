"""The order of the catalogue: chapters with the topics, or single entries, that belong to them."""

from __future__ import annotations

# chapter → (title, Chinese title, topics and identifiers in order); a topic that none lists is a chapter of its own
CHAPTERS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("Recurrent networks", "循环网络", ("rnn", "grad")),
    (
        "Sequence to sequence",
        "序列到序列",
        (
            "seq2seq",
            "decode.argmax",
            "attention.score_dot",
            "attention.score_scaled",
            "attention.score_additive",
            "attention.score_variants",
            "attention.weights",
            "attention.context",
            "attention.readout",
        ),
    ),
    (
        "Scaled dot-product and multi-head attention",
        "缩放点积与多头注意力",
        ("variance", "softmax.saturated_loss", "attention", "attention.neighbourhood", "mha"),
    ),
    (
        "Transformer components",
        "Transformer 组件",
        (
            "embedding",
            "position",
            "rope",
            "ffn",
            "residual",
            "layernorm",
            "block.post_ln",
            "block",
            "output",
            "architecture",
        ),
    ),
    (
        "Softmax, losses, language modelling",
        "Softmax、损失与语言建模",
        ("softmax", "loss", "lm", "info", "tiny_model"),
    ),
    ("Optimisation", "优化", ("adam", "bayes", "hessian")),
    ("Inference", "推理", ("decode", "kv_cache", "quantisation", "metric", "sequence", "tensor")),
    (
        "Views and analogies",
        "视角与类比",
        (
            "geometry",
            "transport",
            "boltzmann",
            "ntk",
            "double_descent",
            "rademacher",
            "quantum",
            "dynamics",
            "causal",
            "tiny_model.coincidence",
            "interpretation",
        ),
    ),
)
PLACES = {name: (k, j) for k, (_, _, names) in enumerate(CHAPTERS) for j, name in enumerate(names)}


def place(identifier: str) -> tuple[int, int]:
    """Where an entry stands: its chapter, and its topic's place in it; what no chapter lists comes last.

    >>> place("decode.argmax") < place("attention.full") < place("decode.beam") < place("notes.ridge")
    True
    """
    topic = identifier.split(".")[0]
    return PLACES.get(identifier) or PLACES.get(topic) or (len(CHAPTERS), 0)


def chapter(identifier: str, lang: str = "en") -> str:
    """The title of an entry's chapter; its topic where no chapter lists it.

    >>> chapter("decode.argmax"), chapter("notes.ridge")
    ('Sequence to sequence', 'notes')
    """
    k, _ = place(identifier)
    if k == len(CHAPTERS):
        return identifier.split(".")[0]
    english, chinese, _ = CHAPTERS[k]
    return chinese if lang == "zh" else english
