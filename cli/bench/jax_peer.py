"""The second peer of `gradproof bench train`: the same models in JAX, one jitted step with Adam.

A process of its own that imports nothing of gradproof. The parameters keep the names and shapes that they have there.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Arrays = dict[str, Any]
ADAM = (0.9, 0.999, 1e-8)


def decoder(c: dict[str, Any], p: Arrays, data: Arrays) -> Any:
    """The logits (B,T,N) of a decoder-only Transformer, pre-norm."""
    import jax
    import jax.numpy as jnp

    def norm(x: Any, at: str) -> Any:
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) / jnp.sqrt(variance + 1e-5) * p[f"{at}.g"] + p[f"{at}.c"]

    x = p["E"][data["target"]] * c["width"] ** 0.5 + data["places"]
    for k in range(c["layers"]):
        at = f"decoder.{k}.attention"
        y = norm(x, f"{at}.norm")
        q, key, v = (jnp.einsum("btk,kar->btar", y, p[f"{at}.W_{n}"]) + p[f"{at}.b_{n}"] for n in "QKV")
        read = jax.nn.dot_product_attention(q, key, v, is_causal=True)
        x = x + jnp.einsum("btar,arl->btl", read, p[f"{at}.W_O"]) + p[f"{at}.b_O"]
        at = f"decoder.{k}.ffn"
        inner = jax.nn.relu(norm(x, f"{at}.norm") @ p[f"{at}.W_1"] + p[f"{at}.b_1"])
        x = x + inner @ p[f"{at}.W_2"] + p[f"{at}.b_2"]
    return norm(x, "decoder.norm") @ p["output.U"] + p["output.b_U"]


def encoder_decoder(c: dict[str, Any], p: Arrays, data: Arrays) -> Any:
    """The logits (B,T,N) of a recurrent encoder–decoder of one layer with attention."""
    import jax
    import jax.numpy as jnp

    def layer(side: str, tokens: Any, start: Any) -> Any:
        own = {name.split(".")[-1]: value for name, value in p.items() if name.startswith(f"{side}.0.")}
        x = p[f"{side}.embedding.E"][tokens.T]
        inputs = {g: x @ own[f"W_i{g}"] + own[f"b_i{g}"] for g in ("rzn" if c["cell"] == "gru" else "n")}

        def step(h: Any, now: Any) -> Any:
            if c["cell"] == "rnn":
                h = jnp.tanh(now["n"] + h @ own["W_hn"])
                return h, h
            r, z = (jax.nn.sigmoid(now[g] + h @ own[f"W_h{g}"] + own[f"b_h{g}"]) for g in "rz")
            new = jnp.tanh(now["n"] + r * (h @ own["W_hn"] + own["b_hn"]))
            h = (1 - z) * new + z * h
            return h, h

        return jax.lax.scan(step, start, inputs)

    last, memory = layer("encoder", data["source"], jnp.zeros((len(data["source"]), c["width"]), jnp.float32))
    _, states = layer("decoder", data["target"], last)
    memory, states = memory.swapaxes(0, 1), states.swapaxes(0, 1)
    if c["score"] == "additive":
        keys, queries = memory @ p["attention.W_1"], states @ p["attention.W_2"]
        scores = jnp.tanh(keys[:, None] + queries[:, :, None]) @ p["attention.v"]
    else:
        scores = states @ memory.swapaxes(1, 2)
    read = jax.nn.softmax(scores, axis=2) @ memory
    readout = jnp.tanh(read @ p["attention.W_a"] + states @ p["attention.W_s"] + p["attention.b_c"])
    return readout @ p["output.U"] + p["output.b_U"]


def jitted(case: dict[str, Any], data: Arrays) -> Callable[..., Any]:
    """(parameters, first and second moments, step number) → (the new ones, the loss), compiled, memory donated."""
    import jax
    import jax.numpy as jnp

    logits = decoder if case["kind"] == "transformer" else encoder_decoder
    beta1, beta2, epsilon = ADAM

    def loss(p: Arrays) -> Any:
        logp = jax.nn.log_softmax(logits(case["config"], p, data), axis=-1)
        return -jnp.take_along_axis(logp, data["y"][:, :, None], axis=-1).mean()

    def step(p: Arrays, m: Arrays, v: Arrays, t: Any) -> Any:
        value, g = jax.value_and_grad(loss)(p)
        m = jax.tree.map(lambda m, g: beta1 * m + (1 - beta1) * g, m, g)
        v = jax.tree.map(lambda v, g: beta2 * v + (1 - beta2) * g * g, v, g)
        one, two = 1 - beta1**t, 1 - beta2**t
        p = jax.tree.map(lambda p, m, v: p - case["rate"] * (m / one) / (jnp.sqrt(v / two) + epsilon), p, m, v)
        return p, m, v, value

    return jax.jit(step, donate_argnums=(0, 1, 2))


def main() -> None:
    """Read the case, then answer `step` with loss, seconds and seconds of all cores, `memory` with megabytes."""
    case = json.loads(sys.argv[1])
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: case["threads"]])  # XLA takes as many threads as cores
    import jax

    jax.config.update("jax_platforms", "cpu")
    arrays = {name: jax.numpy.asarray(value) for name, value in np.load(case["file"]).items()}
    data = {name: arrays.pop(name) for name in ("source", "target", "y", "places") if name in arrays}
    step = jitted(case, data)
    m, v = (jax.tree.map(jax.numpy.zeros_like, arrays) for _ in range(2))
    number = 0.0
    for line in sys.stdin:
        if line.strip() == "memory":
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, flush=True)
            continue
        start, used = time.perf_counter(), time.process_time()
        number += 1
        arrays, m, v, loss = step(arrays, m, v, number)
        value = float(loss)
        jax.block_until_ready(arrays)
        print(value, time.perf_counter() - start, time.process_time() - used, flush=True)


if __name__ == "__main__":
    main()
