"""`gradproof decode` and `gradproof evaluate`: what a trained run makes of an input, and how good it is."""

from __future__ import annotations

from typing import Any

import click

from gradproof.cli.output.console import emit_json


@click.command("decode")
@click.argument("run", metavar="RUN")
@click.argument("texts", metavar="TEXT", nargs=-1, required=True)
@click.option("--beam", type=click.IntRange(min=1), default=1, show_default=True, help="1 is greedy.")
@click.option("--n-best", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--alpha", type=float, default=1.0, show_default=True, help="Exponent of the length normalisation.")
@click.option("--temperature", type=float, default=None, help="Sample; 0 is greedy, 1 the model's distribution.")
@click.option("--top-k", type=click.IntRange(min=1), default=None, help="Sample among the k best tokens.")
@click.option("--top-p", type=float, default=None, help="Sample among the fewest tokens of this probability.")
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="New tokens at most.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--bits", type=click.Choice(["8", "4"]), default=None, help="Store the weights as int8 or int4 first.")
@click.option("--plot", metavar="FILE.png", default=None, help="Draw the attention weights of the first text.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def decode_command(
    run: str, texts: tuple[str, ...], bits: str | None, plot: str | None, as_json: bool, **how: Any
) -> int:
    """What the model in the folder RUN makes of TEXT: its translation, or its continuation."""
    from gradproof.models.nets.kinds import PAIR_MODELS
    from gradproof.models.trained.run import load_run

    drawn = _drawn(how)
    found = load_run(run)
    if plot and found.kind not in PAIR_MODELS:
        raise click.UsageError(f"--plot draws the attention to a source, and a {found.kind} model has none")
    error = _quantised(found, int(bits)) if bits else None
    for text in texts:
        unknown = found.source.unknown(text) if hasattr(found.source, "unknown") else []
        if unknown:
            click.echo(f"unknown to this model, read as <unk>: {' '.join(map(repr, unknown))}", err=True)
    results = (_translated if found.kind in PAIR_MODELS else _continued)(found, texts, how, drawn)
    rows = [_row(found, text, hypotheses) for text, hypotheses in zip(texts, results, strict=True)]
    if plot:
        _plot(found, texts[0], rows[0]["hypotheses"][0]["tokens"], plot)
    if as_json:
        emit_json({"results": rows, "quantisation": error})
        return 0
    for row in rows:
        for hypothesis in row["hypotheses"]:
            unfinished = (
                "" if hypothesis["finished"] or found.kind not in PAIR_MODELS else "  (no end within the limit)"
            )
            click.echo(f"{hypothesis['text']}\t{hypothesis['score']:.4f}{unfinished}")
    if error:
        click.echo(f"int{bits}: largest relative error of a weight {error['largest_relative_error']:.4f}", err=True)
    return 0


def _drawn(how: dict[str, Any]) -> dict[str, Any] | None:
    """The settings of sampling, None where nothing is drawn; settings that exclude each other are an error."""
    if how["n_best"] > how["beam"]:
        raise click.UsageError(f"--n-best {how['n_best']} needs a beam at least that wide")
    asked = [name for name in ("temperature", "top_k", "top_p") if how[name] is not None]
    if not asked:
        return None
    if how["beam"] > 1:
        raise click.UsageError(f"--beam searches, --{asked[0].replace('_', '-')} draws: choose one of them")
    temperature, top_p = (1.0 if how[name] is None else how[name] for name in ("temperature", "top_p"))
    return {"temperature": temperature, "top_k": how["top_k"], "top_p": top_p, "seed": how["seed"]}


def _translated(run: Any, texts: tuple[str, ...], how: dict[str, Any], drawn: dict[str, Any] | None) -> list[Any]:
    from gradproof.models.trained.results import translate

    return translate(run, texts, how["beam"], how["n_best"], how["alpha"], how["limit"], drawn)


def _continued(run: Any, texts: tuple[str, ...], how: dict[str, Any], drawn: dict[str, Any] | None) -> list[Any]:
    """Each text on its own: their lengths differ."""
    import numpy as np

    from gradproof.models.decoding.incremental import TransformerStepper
    from gradproof.models.decoding.search import beam_search, greedy, sample

    step, results = TransformerStepper(run.model), []
    for text in texts:
        prompt = np.array([run.source.encode(text)])
        if not prompt.size:
            raise click.UsageError("a text to continue needs at least one symbol")
        if prompt.shape[1] >= run.limit:
            raise click.UsageError(f"the text has {prompt.shape[1]} tokens and the model's limit is {run.limit}")
        limit = min(how["limit"], run.limit - prompt.shape[1])
        if how["beam"] > 1:
            settings = {"width": how["beam"], "n_best": how["n_best"], "alpha": how["alpha"]}
            results += beam_search(step, step.start(), prompt, limit=limit, **settings)
        elif drawn:
            results.append(sample(step, step.start(), prompt, limit=limit, **drawn))
        else:
            results.append(greedy(step, step.start(), prompt, limit=limit))
    return results


def _row(run: Any, text: str, hypotheses: Any) -> dict[str, Any]:
    shown = [
        {
            "text": run.target.decode(h.tokens),
            "tokens": list(h.tokens),
            "log_probability": h.log_probability,
            "score": h.score,
            "finished": h.finished,
        }
        for h in hypotheses
    ]
    return {"input": text, "hypotheses": shown}


def _quantised(run: Any, bits: int) -> dict[str, float]:
    """Replace the weights by what comes back from storage of that many bits."""
    from gradproof.models.nets.quantise import quantise_parameters

    weights, reports = quantise_parameters(dict(run.model.parameters), bits)
    run.model.parameters.load(weights)
    before, after = (sum(getattr(r, name) for r in reports) for name in ("bytes_before", "bytes_after"))
    return {
        "bits": bits,
        "largest_relative_error": max(r.relative_error for r in reports),
        "bytes_before": before,
        "bytes_after": after,
    }


def _plot(run: Any, text: str, tokens: list[int], path: str) -> None:
    from gradproof.models.trained.results import attention_weights
    from gradproof.models.training.plots import save_attention

    weights, source, target = attention_weights(run, text, tokens)
    save_attention(weights, source, target, path)
    click.echo(f"written: {path}", err=True)


@click.command("evaluate")
@click.argument("run", metavar="RUN")
@click.option("--beam", type=click.IntRange(min=1), default=None, help="1, as without it, is greedy.")
@click.option("--count", type=click.IntRange(min=1), default=None, help="At most so many test pairs.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def evaluate_command(run: str, beam: int | None, count: int | None, as_json: bool) -> int:
    """Perplexity, error rates (closest reference) and BLEU of the run in the folder RUN on held-out data."""
    from gradproof.models.nets.kinds import PAIR_MODELS
    from gradproof.models.trained.results import evaluate
    from gradproof.models.trained.run import load_run

    loaded = load_run(run)
    if (beam or count) and loaded.kind not in PAIR_MODELS:
        raise click.UsageError(f"--beam and --count are for pairs; a {loaded.kind} model is measured on its whole text")
    found = evaluate(loaded, beam or 1, count)
    if as_json:
        emit_json(found)
        return 0
    for name, value in found.items():
        shown = f"{value:.2%}" if name in ("per", "wer") else f"{value:.4f}" if isinstance(value, float) else str(value)
        click.echo(f"{name:<12}{shown}")
    return 0
