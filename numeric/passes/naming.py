"""Names for temporaries that say what they hold."""

from __future__ import annotations

from collections.abc import Mapping

from gradproof.numeric.lowering.nodes import REDUCTIONS, Node, extent, is_scalar, negative


def suggested(node: Node, names: Mapping[Node, str]) -> str:
    """A name that says what a temporary holds."""
    main = [name for arg in sorted(node.args, key=lambda arg: -extent(arg)) if (name := main_name(arg, names))]
    first = stem(main[0]) if main else "part"
    if node.op in ("view", "float"):
        return suggested(node.args[0], names)
    if node.op == "where":
        branches = [name for arg in node.args[1:] if (name := main_name(arg, names))]
        return f"{stem(branches[0])}_masked" if branches else "masked"
    if node.op in REDUCTIONS:
        return f"{first}_{node.op}"
    if node.op == "matmul" and len(main) == 2:
        return "".join(main) if all(len(name) <= 2 for name in main) else "_".join(main)
    if node.op == "call" and node.data[0] == "maximum":
        return suggested(node.args[0], names)
    if node.op == "call":
        return f"{node.data[0]}_{first}"
    if node.op == "mul" and len(main) == 2 and all(len(name) <= 6 for name in main):
        return "_".join(main)
    if node.op == "add" and len(main) == 2 and sum(map(len, main)) < 12:
        signs = [negative(arg) for arg in sorted(node.args, key=lambda arg: -extent(arg)) if main_name(arg, names)]
        return f"{main[1]}_minus_{main[0]}" if signs[0] else f"{main[0]}_{'minus' if signs[1] else 'plus'}_{main[1]}"
    if node.op == "add" and len(node.args) == 2 and is_one_minus_square(node):
        return f"{first}_slope"
    if node.op == "pow" and node.args[1].op == "scalar":
        return f"{first}_{POWERS.get(str(node.args[1].data[0]), 'power')}"
    return FALLBACK.get(node.op, "{}_part").format(first)


def is_one_minus_square(node: Node) -> bool:
    """1 − x², the slope of tanh."""
    one, other = sorted(node.args, key=lambda arg: arg.op != "scalar")
    square = other.args[-1] if other.op == "mul" and is_scalar(other.args[0], -1) else one
    return is_scalar(one, 1) and square.op == "pow" and is_scalar(square.args[1], 2)


def stem(name: str) -> str:
    """A name without the endings that say how it was made, where there is more than one of them.

    >>> stem("X_squared_shifted"), stem("W_Q_max")
    ('X', 'W_Q_max')
    """
    parts = name.split("_")
    count = sum(part in ENDINGS or part.isdigit() for part in parts[1:])
    if count < 2:
        return name
    return "_".join(part for k, part in enumerate(parts) if k == 0 or not (part in ENDINGS or part.isdigit()))


ENDINGS = frozenset({"shifted", "scaled", "masked", "squared", "power", "root", "part", "mask", "sum", "max", "mean"})
POWERS = {"2": "squared", "1/2": "root", "-1/2": "scale"}
FALLBACK = {
    "compare": "mask",
    "eye": "identity",
    "arange": "index",
    "where": "{}_masked",
    "add": "{}_shifted",
    "mul": "{}_scaled",
    "place": "{}_padded",
    "overlap": "{}_added",
    "scatter": "{}_scattered",
    "take": "{}_taken",
    "float": "{}_mask",
    "solve": "{}_solved",
}


def main_name(node: Node, names: Mapping[Node, str]) -> str | None:
    """The name of the first array that a node is made of."""
    if node in names:
        return names[node]
    if node.op == "array":
        return str(node.data[0])
    if node.op == "matmul":
        pair = [main_name(arg, names) or "" for arg in node.args]
        if all(1 <= len(name) <= 2 for name in pair):
            return "".join(pair)
    found = (main_name(arg, names) for arg in sorted(node.args, key=lambda arg: -extent(arg)))
    return next((name for name in found if name), None)
