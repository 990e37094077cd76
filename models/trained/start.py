"""From a data source and settings to a model, its vocabularies and its trainer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gradproof.models.data.batches import PairBatches, encode_pairs
from gradproof.models.data.pairs import split_text
from gradproof.models.data.text_batches import TextBatches
from gradproof.models.data.tokens import BytePairTokeniser, Tokeniser, Vocabulary
from gradproof.models.decoding.metrics import error_rates
from gradproof.models.errors import DataError
from gradproof.models.nets.kinds import PAIR_MODELS, make_model
from gradproof.models.trained.results import hypotheses_of, pair_perplexity, text_perplexity
from gradproof.models.trained.run import Run
from gradproof.models.trained.sources import DataSettings, load_pairs, load_text, target_kind
from gradproof.models.training.trainer import Settings, Trainer


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
