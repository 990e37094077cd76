"""Runs: from a data source and settings to a trainer, and from a run's folder back to the model.

A run's folder holds checkpoint.safetensors with everything that decoding and evaluation need: parameters, optimiser,
vocabularies, the model's configuration and where the data came from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gradproof.models.batches import Examples, PairBatches, encode_pairs, evaluation_batches
from gradproof.models.checkpoint import check_belongs, load_checkpoint
from gradproof.models.cmu import read_cmudict, split_cmudict
from gradproof.models.data import Pair, merge_references, read_pairs, read_text, split_pairs, split_text
from gradproof.models.decoding import Hypothesis, beam_search, greedy, sample, start_tokens
from gradproof.models.errors import CheckpointError, DataError, TrainingError
from gradproof.models.incremental import stepper
from gradproof.models.metrics import Perplexity, bleu, error_rates
from gradproof.models.model import Model
from gradproof.models.seq2seq import Seq2Seq, Seq2SeqConfig
from gradproof.models.tasks import TASKS, task_pairs
from gradproof.models.text_batches import TextBatches, mask_tokens, text_windows
from gradproof.models.tokens import BOS, BytePairTokeniser, Tokeniser, Vocabulary, tokeniser_from_json
from gradproof.models.training import Settings, Trainer
from gradproof.models.transformer import Transformer, TransformerConfig

PAIR_MODELS = ("seq2seq", "transformer")
TEXT_MODELS = ("gpt", "bert")
KINDS = {"transformer": "encoder-decoder", "gpt": "decoder", "bert": "encoder"}


@dataclass(frozen=True)
class DataSettings:
    """Where the data come from: `cmudict`, a task made by code (`dates`, `numbers`), or a file.

    `tokens`: char, word or space, for the source and (`target_tokens`) the target; `bpe` is a number of byte-pair
    symbols for a text; `count` pairs of a task; windows of `length` tokens of a text.
    """

    data: str
    tokens: str = "char"
    target_tokens: str = ""
    split: str = "word"
    count: int = 5000
    length: int = 64
    bpe: int = 0
    batch: int = 64
    seed: int = 0


@dataclass(frozen=True)
class Pairs:
    """Pairs in three parts."""

    train: list[Pair]
    validation: list[Pair]
    test: list[Pair]


def load_pairs(settings: DataSettings) -> Pairs:
    """The pairs of a data source; a file or task without a test part is tested on its validation part."""
    if settings.data == "cmudict":
        return Pairs(*split_cmudict(read_cmudict(), settings.split))
    if settings.data in TASKS:
        pairs = task_pairs(settings.data, settings.count, settings.seed)
    else:
        pairs = merge_references(read_pairs(settings.data))
    train, validation = split_pairs(pairs)
    return Pairs(train, validation, validation)


def load_text(settings: DataSettings) -> str:
    """The text of a file, or of a task: one pair a line."""
    if settings.data == "cmudict":
        raise DataError("cmudict holds pairs, words and their phonemes: train seq2seq or transformer on it")
    if settings.data in TASKS:
        return "".join(f"{p.source} = {p.target}\n" for p in task_pairs(settings.data, settings.count, settings.seed))
    return read_text(settings.data)


def target_kind(settings: DataSettings) -> str:
    return settings.target_tokens or ("space" if settings.data == "cmudict" else settings.tokens)


@dataclass
class Run:
    """A model with its vocabularies."""

    model: Model[Any]
    kind: str
    source: Tokeniser
    target: Tokeniser
    data: DataSettings

    @property
    def limit(self) -> int:
        return int(self.model.config.limit)  # type: ignore[attr-defined]


def make_model(kind: str, config: dict[str, Any], seed: int = 0, dtype: Any = np.float32) -> Model[Any]:
    """A new model of a kind: seq2seq, transformer, gpt or bert."""
    if kind == "seq2seq":
        return Seq2Seq(Seq2SeqConfig(**config), seed=seed, dtype=dtype)
    if kind not in KINDS:
        raise TrainingError(f"there is no model {kind!r}; there are {', '.join((*PAIR_MODELS, *TEXT_MODELS))}")
    return Transformer(TransformerConfig(kind=KINDS[kind], **config), seed=seed, dtype=dtype)


def new_run(
    kind: str, data: DataSettings, config: dict[str, Any], settings: Settings, out: Path | None
) -> tuple[Run, Trainer]:
    """Read the data, build vocabularies, model and trainer. `config` holds the model's sizes."""
    run, batches, validate = (_pair_run if kind in PAIR_MODELS else _text_run)(kind, data, config, settings)
    model_config = run.model.config.to_json()  # type: ignore[attr-defined]
    stored = {"model": kind, "data": data.__dict__, **{k: v for k, v in model_config.items() if k != "kind"}}
    vocabularies = {"source": run.source.to_json(), "target": run.target.to_json()}
    return run, Trainer(run.model, batches, settings, out, validate, stored, vocabularies)


def _pair_run(
    kind: str, data: DataSettings, config: dict[str, Any], settings: Settings
) -> tuple[Run, PairBatches, Callable[[], dict[str, float]]]:
    pairs = load_pairs(data)
    source = Vocabulary.build((p.source for p in pairs.train), kind=data.tokens)
    target = Vocabulary.build((t for p in pairs.train for t in p.targets), kind=target_kind(data))
    model = make_model(kind, {**config, "source_size": source.size, "target_size": target.size}, settings.seed)
    run = Run(model, kind, source, target, data)
    limit = run.limit
    train = encode_pairs(pairs.train, source, target, source_limit=limit, target_limit=limit)
    held_out = encode_pairs(pairs.validation, source, target, source_limit=limit, target_limit=limit)
    some = pairs.validation[:300]

    def validate() -> dict[str, float]:
        value = pair_perplexity(model, held_out)
        rates = error_rates(*hypotheses_of(run, some, 1))
        return {"validation_loss": value.mean, "perplexity": value.value, "error_rate": rates.per, "wrong": rates.wer}

    return run, PairBatches(train, data.batch, seed=settings.seed), validate


def _text_run(
    kind: str, data: DataSettings, config: dict[str, Any], settings: Settings
) -> tuple[Run, TextBatches, Callable[[], dict[str, float]]]:
    train, held_out = split_text(load_text(data))
    masked = kind == "bert"
    tokens: Tokeniser
    if data.bpe:
        tokens = BytePairTokeniser.train([train], size=data.bpe, mask=masked)
    else:
        tokens = Vocabulary.build([train], kind=data.tokens, mask=masked)
    limit = max(int(config.get("limit", 512)), data.length)
    model = make_model(kind, {**config, "limit": limit, "target_size": tokens.size}, settings.seed)
    rate = 0.15 if masked else None
    seed = settings.seed
    batches = TextBatches(tokens.encode(train), data.batch, data.length, seed=seed, masked=rate, vocabulary=tokens)
    ids = tokens.encode(held_out)
    if len(ids) < 2:
        raise DataError(f"{data.data} is too short: of the part held out for validation {len(ids)} token(s) are left")

    def validate() -> dict[str, float]:
        value = text_perplexity(model, ids, data, tokens if masked else None)
        return {"validation_loss": value.mean, "perplexity": value.value}

    return Run(model, kind, tokens, tokens, data), batches, validate


def pair_perplexity(model: Model[Any], examples: Examples) -> Perplexity:
    """Over all target tokens, whatever the batches."""
    total = Perplexity()
    for batch in evaluation_batches(examples, 64):
        total.add(model.token_losses(batch), batch.target_mask)
    return total


def text_perplexity(model: Model[Any], ids: Sequence[int], data: DataSettings, masked: Tokeniser | None) -> Perplexity:
    """Over all tokens of a text (of the masked ones, always the same, for masked-token training)."""
    total, rng = Perplexity(), np.random.default_rng(data.seed)
    for batch in text_windows(ids, 64, data.length):
        batch = mask_tokens(batch.inputs, batch.valid, masked, rng) if masked else batch
        total.add(model.token_losses(batch), batch.mask)
    return total


# ------------------------------------------------------------------------------------------------------------ decoding


def translate(
    run: Run,
    sources: Sequence[str],
    beam: int = 1,
    n_best: int = 1,
    alpha: float = 1.0,
    limit: int | None = None,
    drawn: dict[str, Any] | None = None,
) -> list[list[Hypothesis]]:
    """The hypotheses for each source, best first: greedy for a beam of 1, unless `drawn` (settings of `sample`).

    At most `limit` symbols, and at most 10 more than three times the length of the source.
    """
    if run.kind not in PAIR_MODELS:
        raise DataError(f"a {run.kind} model does not translate; it continues a text or fills in masked tokens")
    step = stepper(run.model)  # type: ignore[arg-type]
    encoded = encode_pairs([Pair(s, ("",)) for s in sources], run.source, run.target, source_limit=run.limit)
    found: list[list[Hypothesis]] = [[] for _ in sources]
    for batch in evaluation_batches(encoded, max(1, 256 // beam)):
        state = step.start(batch.source, batch.source_mask)
        prompt = start_tokens(len(batch.rows), BOS)
        most = min(run.limit - 1, 3 * batch.source.shape[1] + 10, limit or run.limit)
        if drawn:
            results = [[h] for h in sample(step, state, prompt, limit=most, **drawn)]
        elif beam == 1:
            results = [[h] for h in greedy(step, state, prompt, limit=most)]
        else:
            results = beam_search(step, state, prompt, limit=most, width=beam, n_best=n_best, alpha=alpha)
        for row, hypotheses in zip(batch.rows, results, strict=True):
            found[int(row)] = hypotheses
    return found


def hypotheses_of(run: Run, pairs: Sequence[Pair], beam: int) -> tuple[list[list[str]], list[list[list[str]]]]:
    """The best hypothesis of each pair as symbols, and the symbols of all its references."""
    best = translate(run, [pair.source for pair in pairs], beam)
    hypotheses = [run.target.pieces(found[0].tokens) for found in best]
    return hypotheses, [[run.target.pieces(run.target.encode(t)) for t in pair.targets] for pair in pairs]


def evaluate(run: Run, beam: int = 1, count: int | None = None) -> dict[str, float]:
    """Perplexity on held-out data; for pairs also PER, WER (closest reference) and BLEU of what is decoded."""
    if run.kind in TEXT_MODELS:
        _, held_out = split_text(load_text(run.data))
        masked = run.target if run.kind == "bert" else None
        value = text_perplexity(run.model, run.target.encode(held_out), run.data, masked)
        return {"loss": value.mean, "perplexity": value.value}
    pairs = load_pairs(run.data).test[:count]
    examples = encode_pairs(pairs, run.source, run.target, variants=False)
    value = pair_perplexity(run.model, examples)
    hypotheses, references = hypotheses_of(run, pairs, beam)
    rates = error_rates(hypotheses, references)
    return {
        "pairs": len(pairs),
        "loss": value.mean,
        "perplexity": value.value,
        "per": rates.per,
        "wer": rates.wer,
        "bleu": bleu(hypotheses, references).percent,
        "beam": beam,
    }


def attention_weights(run: Run, source: str, tokens: Sequence[int]) -> tuple[Any, list[str], list[str]]:
    """Attention of the decoder's last layer to the source while it writes `tokens`, (heads, T, S), and both texts."""
    if run.kind not in PAIR_MODELS:
        raise DataError(f"a {run.kind} model has no source to attend to: there is nothing to draw")
    batch = next(iter(evaluation_batches(_one(run, source, tokens), 1)))
    from gradproof.models.wiring import run as evaluated

    values = evaluated(run.model.evaluation_steps, {**run.model.parameters, **run.model.values(batch, 1.0)})
    names = [name for name in values if name.endswith((".cross.A", ".alpha"))]
    if not names:
        raise DataError("this model has no attention to the source")
    weights = values[names[-1]][0] if names[-1].endswith("A") else values[names[-1]].swapaxes(0, 1)
    shown = [*run.source.pieces(run.source.encode(source)), "<eos>"]
    return weights, shown, [*(run.target.symbols[token] for token in tokens), "<eos>"]  # type: ignore[attr-defined]


def _one(run: Run, source: str, tokens: Sequence[int]) -> Examples:
    from gradproof.models.batches import Ragged
    from gradproof.models.tokens import EOS

    encoded = [*run.source.encode(source), EOS]
    return Examples(Ragged.of([encoded]), Ragged.of([list(tokens)]), (Pair(source, ("",)),))


def load_run(path: str | Path) -> Run:
    """The run of a folder, ready to decode."""
    checkpoint = load_checkpoint(path)
    config = dict(checkpoint.config)
    try:
        kind, data = str(config.pop("model")), DataSettings(**config.pop("data"))
        model = make_model(kind, config)
        source, target = (tokeniser_from_json(checkpoint.vocabularies[side]) for side in ("source", "target"))
    except (KeyError, TypeError) as error:
        raise CheckpointError(f"{path} holds no run that this version of gradproof can read: {error}") from None
    check_belongs(checkpoint, shapes=model.parameters.shapes, where=str(path))
    if target.size != config["target_size"] or (kind in PAIR_MODELS and source.size != config["source_size"]):
        raise CheckpointError(f"{path} is damaged: its vocabularies do not have the size of its model")
    model.parameters.load(checkpoint.parameters)
    return Run(model, kind, source, target, data)
