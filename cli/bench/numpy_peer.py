"""Our side of `gradproof bench train`: a process that holds the model.

It answers `step` with loss, seconds and seconds of all cores, `memory` with megabytes.
"""

from __future__ import annotations

import itertools
import json
import resource
import sys
import time
from typing import Any

import numpy as np

from gradproof.models.data.batches import PairBatch
from gradproof.models.data.text_batches import TextBatch
from gradproof.models.nets.model import Model
from gradproof.models.nets.seq2seq import Seq2Seq, Seq2SeqConfig
from gradproof.models.nets.transformer import Transformer, TransformerConfig
from gradproof.models.training.trainer import Settings, Trainer


def made(case: dict[str, Any]) -> tuple[Model[Any], Any]:
    """The model and the one batch of random tokens that it learns."""
    rng = np.random.default_rng(0)
    config, rows, length = case["config"], case["batch"], case["length"]
    tokens = rng.integers(4, config["target_size"], (rows, length + 1))
    ones = np.ones((rows, length), bool)
    if case["kind"] == "transformer":
        model: Model[Any] = Transformer(TransformerConfig("decoder", inner=4 * config["width"], **config))
        return model, TextBatch(tokens[:, :-1], tokens[:, 1:], ones, ones)
    source = rng.integers(4, config["source_size"], (rows, length))
    return Seq2Seq(Seq2SeqConfig(**config)), PairBatch(
        source, ones, tokens[:, :-1], tokens[:, 1:], ones, np.arange(rows)
    )


def share(model: Model[Any], batch: Any, path: str) -> None:
    """What the peer starts from."""
    values = model.values(batch, 1.0)
    data = {"target": values["target"], "y": values["y"]}
    data |= {name: values[name] for name in ("source",) if name in values}
    data |= {"places": values["decoder.p"]} if "decoder.p" in values else {}
    arrays: dict[str, Any] = {**model.parameters, **data}
    np.savez(path, **arrays)


def main() -> None:
    case = json.loads(sys.argv[1])
    model, batch = made(case)
    share(model, batch, case["file"])
    settings = Settings(optimiser="adam", rate=case["rate"], schedule="constant", clip=0, shards=case["threads"])
    trainer = Trainer(model, itertools.repeat(batch), settings)  # type: ignore[arg-type]
    with trainer.workers() as pool:
        print("ready", flush=True)
        for line in sys.stdin:
            if line.strip() == "memory":
                print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, flush=True)
                continue
            start, used = time.perf_counter(), time.process_time()
            result = trainer.step(pool)
            print(result.loss, time.perf_counter() - start, time.process_time() - used, flush=True)


if __name__ == "__main__":
    main()
