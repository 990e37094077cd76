"""What a run gives: perplexities, translations, error rates, attention weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradproof.models.data.batches import Examples, Ragged, encode_pairs, evaluation_batches
from gradproof.models.data.pairs import Pair, split_text
from gradproof.models.data.text_batches import mask_tokens, text_windows
from gradproof.models.data.tokens import BOS, EOS, Tokeniser
from gradproof.models.decoding.incremental import stepper
from gradproof.models.decoding.metrics import Perplexity, bleu, error_rates
from gradproof.models.decoding.search import Hypothesis, beam_search, greedy, sample, start_tokens
from gradproof.models.errors import DataError
from gradproof.models.nets.kinds import PAIR_MODELS, TEXT_MODELS
from gradproof.models.nets.model import Model
from gradproof.models.nets.wiring import run as evaluated
from gradproof.models.trained.run import Run
from gradproof.models.trained.sources import DataSettings, load_pairs, load_text


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
    values = evaluated(run.model.evaluation_steps, {**run.model.parameters, **run.model.values(batch, 1.0)})
    weights = run.model.source_weights(values)
    if weights is None:
        raise DataError("this model has no attention to the source")
    shown = [*run.source.pieces(run.source.encode(source)), "<eos>"]
    return weights, shown, [*(run.target.symbols[token] for token in tokens), "<eos>"]  # type: ignore[attr-defined]


def _one(run: Run, source: str, tokens: Sequence[int]) -> Examples:
    encoded = [*run.source.encode(source), EOS]
    return Examples(Ragged.of([encoded]), Ragged.of([list(tokens)]), (Pair(source, ("",)),))
