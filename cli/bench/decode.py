"""`gradproof bench decode`: greedy decoding with kept keys and values, and with all positions computed anew."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

import click

from gradproof.cli.output.console import emit_json

if TYPE_CHECKING:
    from gradproof.models.nets.transformer import Transformer

AGREE = 1e-4  # float32
SIZE = 128


@click.command("decode")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, help="Runs of each, alternating.")
@click.option("--new", type=click.IntRange(1), default=60, show_default=True, help="New tokens of a row.")
@click.option("--rows", type=click.IntRange(1), default=8, show_default=True, help="Rows decoded together.")
@click.option("--width", type=click.IntRange(4), default=128, show_default=True, help="A multiple of 4 heads.")
@click.option("--layers", type=click.IntRange(1), default=4, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def bench_decode(rounds: int, new: int, rows: int, width: int, layers: int, as_json: bool) -> int:
    """Greedy decoding of a decoder-only Transformer in float32, with and without cache; the scores are compared first.

    Exit code 1 if the scores differ, or the cache makes it slower.
    """
    import numpy as np

    from gradproof.models.decoding.incremental import TransformerStepper
    from gradproof.models.decoding.search import greedy
    from gradproof.models.nets.kinds import make_model

    sizes = {"target_size": SIZE, "width": width, "heads": 4, "inner": 4 * width, "layers": layers, "limit": new + 11}
    model: Any = make_model("gpt", sizes)
    cached, plain = TransformerStepper(model), Anew(model)
    prompt = np.random.default_rng(0).integers(4, SIZE, (rows, 8))
    _, state = cached(prompt, cached.start())
    longer = np.concatenate([prompt, prompt[:, :3]], axis=1)
    first, second = cached(longer, state)[0], plain(longer, None)[0]
    finite = np.isfinite(first)
    difference = float(np.abs(first[finite] - second[finite]).max())
    seconds: dict[str, list[float]] = {"cached": [], "anew": []}
    for _ in range(rounds):
        for name, step in (("cached", cached), ("anew", plain)):
            start = time.perf_counter()
            greedy(step, step.start(), prompt, limit=new, eos=None)
            seconds[name].append(time.perf_counter() - start)
    middle = {name: statistics.median(found) for name, found in seconds.items()}
    found = {
        "parameters": int(model.parameters.vector.size),
        "rows": rows,
        "new_tokens": new,
        "largest_difference": difference,
        **{f"{name}_tokens_per_second": rows * new / value for name, value in middle.items()},
        "ratio": middle["cached"] / middle["anew"],
    }
    if as_json:
        emit_json(found)
    else:
        click.echo(f"{rows} rows, {new} new tokens each, {found['parameters']:,} parameters, float32")
        click.echo(f"largest difference of a score {difference:.1e}")
        for name, label in (("cached", "keys and values kept"), ("anew", "all positions anew")):
            click.echo(
                f"{label:<24}{1e3 * middle[name] / new:>8.2f} ms a step{rows * new / middle[name]:>10,.0f} tokens/s"
            )
        click.echo(f"with cache / without: {found['ratio']:.3f}")
    return 0 if difference <= AGREE and found["ratio"] <= 1 else 1


class Anew:
    """Next-token log-probabilities without a cache."""

    def __init__(self, model: Transformer) -> None:
        self.model = model
        self.steps = [*model.evaluation_steps[:-1], model.logit_step]

    def start(self) -> None:
        return None

    def __call__(self, tokens: Any, state: None) -> tuple[Any, None]:
        import numpy as np

        from gradproof.models.data.text_batches import TextBatch
        from gradproof.models.decoding.incremental import next_tokens
        from gradproof.models.nets.wiring import run

        real = np.ones(tokens.shape, bool)
        values = self.model.values(TextBatch(tokens, tokens, real, real), 1.0)
        return next_tokens(run(self.steps, {**self.model.parameters, **values})["lp"]), None
