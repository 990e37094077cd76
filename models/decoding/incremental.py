"""Decoding step by step: `stepper(model)` gives the function that `search.py` asks for the next token.

A Transformer keeps the keys and values of all earlier positions, a recurrent decoder its states. Both run the equations
of training: the projections of new positions, and attention from them to everything kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradproof.models.data.tokens import BOS, PAD
from gradproof.models.errors import DecodingError
from gradproof.models.nets import transformer_equations as equations
from gradproof.models.nets.seq2seq import Seq2Seq
from gradproof.models.nets.transformer import Transformer, Wiring, allowed
from gradproof.models.nets.wiring import Network, Placed, run

Array = NDArray[Any]
IntArray = NDArray[np.int64]
State = dict[str, Any]


class CachedWiring(Wiring):
    """The decoder with keys and values that come from the cache; `kept` names what each new position adds to it."""

    def self_attention(self, where: str, value: str, data: dict[str, str]) -> str:
        rotary = "C" in data
        turns = {name: data[name] for name in ("C", "Z") if rotary}
        normed = self.norm(f"{where}.norm", value) if self.config.order == "pre" else value
        stated = equations.keys_values(self.config.bias, rotary)
        self.add(where, stated, {"X": normed, **turns})
        return self.attended(where, value, normed, rotary, data)

    def cross_attention(self, where: str, value: str, data: dict[str, str]) -> str:
        normed = self.norm(f"{where}.norm", value) if self.config.order == "pre" else value
        return self.attended(where, value, normed, False, {"M": data["M"]})

    def attended(self, where: str, value: str, normed: str, rotary: bool, data: dict[str, str]) -> str:
        keys = {name: f"{where}.{name}" for name in ("Kr" if rotary else "K", "V")}
        stated = equations.cached_attention(self.config.bias, rotary)
        value = self.add(where, stated, {"X0": value, "X": normed, **keys, **data})
        return value if self.config.order == "pre" else self.norm(f"{where}.norm", value)


class TransformerStepper:
    """Next-token log-probabilities of a decoder-only or encoder–decoder Transformer, with a cache.

    The state holds arrays with the batch as first axis and `seen`, the number of positions in the cache.
    """

    def __init__(self, model: Transformer) -> None:
        if model.config.kind == "encoder":
            raise DecodingError("an encoder-only model has no next token: it fills in masked ones")
        self.model = model
        config = model.config
        plan = CachedWiring(config.lengths(), config=config, dropout=False)
        value = plan.embed("decoder", "target", plan.table("target"), config.target_size)
        value = plan.stack("decoder", value, "memory" if config.kind == "encoder-decoder" else None)
        plan.close(value, equations.output(config.tied, config.bias))
        self.steps = plan.steps
        self.encoder = [step for step in model.evaluation_steps if step.where.startswith("encoder")]
        self.cross = self.cross_steps() if config.kind == "encoder-decoder" else []

    def cross_steps(self) -> list[Placed]:
        """Keys and values of the memory, once for each layer."""
        config, memory = self.model.config, self.encoder[-1].writes
        plan = Network({})
        stated = equations.keys_values(config.bias, False)
        value = memory[self.encoder[-1].block.equations.outputs[0]]
        names = [f"decoder.{layer}.cross" for layer in range(config.layers)]
        for where in names:
            reads = {own: value if own == "X" else f"{where}.{own}" for own in stated.shapes}
            plan.add(where, stated, reads)
        return plan.steps

    def start(self, source: IntArray | None = None, mask: NDArray[np.bool_] | None = None) -> State:
        """The state before the first token; an encoder–decoder needs the source (B,S) and its mask."""
        if not self.cross:
            return {"seen": 0}
        if source is None or mask is None:
            raise DecodingError("an encoder–decoder decodes a source: give its tokens and their mask")
        model = self.model
        positions = dict(model.position_values("encoder", source.shape[1]))
        data = {"source": source, "encoder.M": allowed(mask, source.shape[1], causal=False), **positions}
        values = run([*self.encoder, *self.cross], {**model.parameters, **data})
        kept = {name: values[name] for step in self.cross for name in step.writes.values()}
        return {"seen": 0, "source.mask": mask, **kept}

    def __call__(self, tokens: IntArray, state: State) -> tuple[Array, State]:
        """Log-probabilities (N,V) of the token after `tokens` (N,t), and the state that has seen them all."""
        log_probabilities, state = self.advance(tokens, state)
        return next_tokens(log_probabilities), state

    def advance(self, tokens: IntArray, state: State) -> tuple[Array, State]:
        """The same for every new position (N,new,V)."""
        model, seen = self.model, int(state["seen"])
        new = tokens[:, seen:]
        if tokens.shape[1] > model.config.limit:
            raise DecodingError(f"{tokens.shape[1]} tokens are more than the model's limit, {model.config.limit}")
        values: dict[str, Any] = {**model.parameters, "target": new}
        values |= dict(model.position_values("decoder", new.shape[1], seen))
        values["decoder.M"] = allowed(np.ones(tokens.shape, bool), new.shape[1], causal=True, first=seen)
        if self.cross:
            values["cross.M"] = allowed(state["source.mask"], new.shape[1], causal=False)
            values |= {name: state[name] for step in self.cross for name in step.writes.values()}
        after = {**state, "seen": tokens.shape[1]}
        for step in self.steps:
            values |= run([step], {name: values[name] for name in step.reads.values()})
            if step.block.equations.name == "keys_values":
                for name in step.writes.values():
                    earlier = [state[name]] if name in state else []
                    values[name] = after[name] = np.concatenate([*earlier, values[name]], axis=1)
        return values["lp"], after


class Seq2SeqStepper:
    """Next-token log-probabilities of a recurrent decoder; the state carries its hidden states."""

    def __init__(self, model: Seq2Seq) -> None:
        self.model = model
        plan = model.plan()
        self.memory, self.starts = model.encoder(plan, False)
        self.encoder = list(plan.steps)
        self.context = self.starts[-1]["h"]
        plan = model.plan()
        self.names = [{s: f"start.{k}.{s}" for s in start} for k, start in enumerate(self.starts)]
        model.decoder(plan, False, self.memory, self.names, self.context)
        self.steps = [*plan.steps, model.logit_step]

    def start(self, source: IntArray, mask: NDArray[np.bool_]) -> State:
        """The state before the first token."""
        model = self.model
        data = model.source_values(source, mask)
        values = run(self.encoder, {**model.parameters, **data})
        kept = {name: values[self.starts[k][s]] for k, start in enumerate(self.names) for s, name in start.items()}
        # time is the first axis of the memory, the batch must be that of a state
        memory = {"memory": values[self.memory].swapaxes(0, 1), "context": values[self.context]}
        return {"seen": 0, "source.M": data["source.M"], "decoder.feed": data["decoder.feed"], **memory, **kept}

    def __call__(self, tokens: IntArray, state: State) -> tuple[Array, State]:
        log_probabilities, state = self.advance(tokens, state)
        return next_tokens(log_probabilities), state

    def advance(self, tokens: IntArray, state: State) -> tuple[Array, State]:
        """Log-probabilities (N,new,V) after every new position, and the state behind the last one."""
        known: dict[str, Any] = {key: value for key, value in state.items() if key not in ("seen", "memory", "context")}
        known |= {self.memory: state["memory"].swapaxes(0, 1), self.context: state["context"]}
        known["target"] = tokens[:, int(state["seen"]) :]
        values = run(self.steps, {**self.model.parameters, **known})
        return values["lp"], {**state, "seen": tokens.shape[1], **self.carried(values)}

    def carried(self, values: Mapping[str, Array]) -> State:
        """The states behind the last step, under the names of initial ones."""
        config, found = self.model.config, {}
        for k, start in enumerate(self.names):
            n = str(k + 1) if config.layers > 1 else ""
            for state, name in start.items():
                own = f"decoder.{state}_last{n}" if config.feeding else f"decoder.{k}.{ENDS[state]}"
                found[name] = values[own]
        return found | ({"decoder.feed": values["decoder.y_last"]} if config.feeding else {})


ENDS = {"h": "last", "c": "last_c"}
FORBIDDEN = (PAD, BOS)  # no text contains them: no target is ever one of them


def next_tokens(log_probabilities: Array) -> Array:
    """(N,V) after the last of the new positions (N,new,V); padding and the start token cannot follow."""
    found = log_probabilities[:, -1].astype(np.float64)
    found[:, FORBIDDEN] = -np.inf
    return found


def stepper(model: Transformer | Seq2Seq) -> TransformerStepper | Seq2SeqStepper:
    """The step function of a model; `.start(source, mask)` makes its first state."""
    return TransformerStepper(model) if isinstance(model, Transformer) else Seq2SeqStepper(model)
