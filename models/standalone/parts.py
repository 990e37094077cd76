"""The fixed parts of a stand-alone file: running a wiring, small tasks, training. `xp` is the array library.

Nothing here differentiates: forward and backward of every block are generated, and chained by the names of arrays.
"""

WIRING = '''
class Block(NamedTuple):
    """Generated code: the arrays that it reads, its results, those with a gradient, what the backward pass needs.

    `sizes` are lengths that no array of the backward pass shows: the array and axis where the forward pass sees them.
    """

    forward: object
    backward: object
    inputs: tuple
    outputs: tuple
    results: tuple
    variables: tuple
    kept: tuple
    sizes: dict
'''

RUN = '''
def forward(parameters, data):
    """All values by name, and what each step keeps for the backward pass."""
    values, tape = {**parameters, **data}, []
    for where, block, given in WIRING:
        names = {own: given.get(own, f"{where}.{own}") for own in (*block.inputs, *block.results)}
        arrays = {own: values[names[own]] for own in block.inputs}
        found = block.forward(**arrays)
        values.update({names[own]: found[own] for own in block.results})
        kept = {own: found[own] if own in found else arrays[own] for own in block.kept}
        kept.update({size: arrays[own].shape[axis] for size, (own, axis) in block.sizes.items()})
        tape.append((block, names, kept))
    return values, tape


def backward(values, tape):
    """The gradient of L with respect to every parameter: the steps in reverse; what several steps send back adds up."""
    found = {"L": xp.ones_like(values["L"])}
    for block, names, kept in reversed(tape):
        outputs = {own: names[own] for own in block.outputs}
        if not any(name in found for name in outputs.values()):
            continue
        arriving = {
            f"G_{own}": found.pop(name) if name in found else xp.zeros_like(values[name])
            for own, name in outputs.items()
        }
        gradients = block.backward(**kept, **arriving)
        for own in block.variables:
            name, gradient = names[own], gradients[f"{own}_bar"]
            found[name] = found[name] + gradient if name in found else gradient
    return found


def loss_and_gradients(parameters, data):
    """The mean loss of a batch and all gradients."""
    values, tape = forward(parameters, data)
    return values["L"], backward(values, tape)
'''

START_NUMPY = '''
def start(seed):
    """First parameters: gains are 1, the others normal with the deviation of the table; a seed for each array."""
    found = {}
    for name, (shape, mean, deviation) in PARAMETERS.items():
        rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        found[name] = floats(mean + deviation * rng.standard_normal(shape))
    return found
'''

START_TORCH = '''
def start(seed):
    """First parameters: gains are 1, the others normal with the deviation of the table; a seed for each array."""
    found = {}
    for name, (shape, mean, deviation) in PARAMETERS.items():
        rng = torch.Generator().manual_seed(seed + zlib.crc32(name.encode()))
        found[name] = mean + deviation * torch.randn(shape, generator=rng)
    return found
'''

ARRAYS_NUMPY = """
def integers(rows):
    return np.array(rows, dtype=np.int64)


def floats(array):
    return array.astype(np.float32)
"""

ARRAYS_TORCH = """
def integers(rows):
    return torch.tensor(rows, dtype=torch.int64)


def floats(array):
    return array.to(torch.float32)
"""

POSITIONS = '''
def positions(count, width):
    """p (count, width): sin(position · ω) and cos(position · ω), side by side for each frequency ω."""
    places, numbers = xp.arange(count, dtype=xp.float64), xp.arange(width // 2, dtype=xp.float64)
    found = angles(pos=places, number=numbers, base=10000.0)
    return floats(xp.stack([found["S"], found["C"]], 2).reshape(count, width))
'''

PADDED = '''
def padded(rows):
    """Rows of equal length, filled up with PAD."""
    longest = max(map(len, rows))
    return integers([row + [PAD] * (longest - len(row)) for row in rows])
'''

PAIRS = '''
PAD, BOS, EOS, FIRST, DIGITS, LONGEST, BATCH = 0, 1, 2, 4, 10, 6, 32


def batch(rng):
    """A random batch of the task: write a row of digits backwards."""
    rows = [[FIRST + rng.randrange(DIGITS) for _ in range(rng.randint(1, LONGEST))] for _ in range(BATCH)]
    source = padded([[*row, EOS] for row in rows])
    target = padded([[BOS, *row[::-1]] for row in rows])
    return values(source, target, padded([[*row[::-1], EOS] for row in rows]))
'''

TRANSFORMER = '''
def values(source, target, y):
    """What the blocks read: tokens, masks (true: may be seen), positions, and the weight of every target."""
    seen, counted, length = source != PAD, y != PAD, y.shape[1]
    causal = xp.tril(xp.ones((length, length), dtype=BOOL))
    return {
        "source": source,
        "target": target,
        "y": y,
        "encoder.M": seen[:, None, :] & (seen[:, :, None] | True),
        "cross.M": seen[:, None, :] & (counted[:, :, None] | True),
        "decoder.M": counted[:, None, :] & causal,
        "encoder.p": positions(source.shape[1], WIDTH),
        "decoder.p": positions(length, WIDTH),
        "weight": floats(counted * (1.0 / int(counted.sum()))),
    }
'''

SEQ2SEQ = '''
def values(source, target, y):
    """What the blocks read: tokens, masks (1: a real token), the encoder's first state, and the targets' weights."""
    seen, counted = source != PAD, y != PAD
    return {
        "source": source,
        "target": target,
        "y": y,
        "source.m": floats(seen),
        "source.M": seen,
        "encoder.zero": floats(xp.zeros((len(source), STATE))),
        "weight": floats(counted * (1.0 / int(counted.sum()))),
    }
'''

GPT = '''
PAD, MARK, FIRST, DIGITS, LENGTH, BATCH = 0, 3, 4, 10, 5, 32


def batch(rng):
    """A random batch of the task: digits, a mark, the same digits backwards; only these are to be predicted."""
    rows = [[FIRST + rng.randrange(DIGITS) for _ in range(LENGTH)] for _ in range(BATCH)]
    rows = integers([[*row, MARK, *row[::-1]] for row in rows])
    tokens, y = rows[:, :-1], rows[:, 1:]
    counted = (y == y) & (xp.arange(y.shape[1]) >= LENGTH)
    return values(tokens, y, counted)


def values(tokens, y, counted):
    """What the blocks read: tokens, the mask (true: may be seen), positions, and the weight of every target."""
    length = y.shape[1]
    return {
        "target": tokens,
        "y": y,
        "decoder.M": (tokens[:, None, :] >= 0) & xp.tril(xp.ones((length, length), dtype=BOOL)),
        "decoder.p": positions(length, WIDTH),
        "weight": floats(counted * (1.0 / int(counted.sum()))),
    }
'''

BERT = '''
PAD, MASK, FIRST, DIGITS, PERIOD, BATCH = 0, 3, 4, 10, 3, 32


def batch(rng):
    """A random batch of the task: three digits four times over, with some masked; the masked ones are to be found."""
    rows = [[FIRST + rng.randrange(DIGITS) for _ in range(PERIOD)] * 4 for _ in range(BATCH)]
    hidden = [[rng.random() < 0.15 for _ in row] for row in rows]
    hidden[0][0] = True
    shown = [[MASK if h else token for token, h in zip(*pair)] for pair in zip(rows, hidden)]
    return values(integers(shown), integers(rows), integers(hidden) == 1)


def values(tokens, y, counted):
    """What the blocks read: tokens, the mask (true: may be seen), positions, and the weight of every target."""
    real = tokens != PAD
    return {
        "target": tokens,
        "y": xp.where(counted, y, PAD),
        "encoder.M": real[:, None, :] & (real[:, :, None] | True),
        "encoder.p": positions(y.shape[1], WIDTH),
        "weight": floats(counted * (1.0 / int(counted.sum()))),
    }
'''

TRAIN = '''
def train(steps=STEPS, seed=0):
    """The losses of a training run; the same seed gives the same run."""
    parameters, rng, losses = start(seed), random.Random(seed), []
    m = {name: xp.zeros_like(theta) for name, theta in parameters.items()}
    v = {name: xp.zeros_like(theta) for name, theta in parameters.items()}
    for step in range(1, steps + 1):
        loss, gradients = loss_and_gradients(parameters, batch(rng))
        losses.append(float(loss))
        numbers = adam_numbers(beta_1=BETA_1, beta_2=BETA_2, t=float(step))
        numbers = {name: float(number) for name, number in numbers.items()}
        settings = {"eta": RATE, "beta_1": BETA_1, "beta_2": BETA_2, "epsilon": EPSILON, **numbers}
        for name, theta in parameters.items():
            new = adam(theta=theta, g=gradients[name], m=m[name], v=v[name], **settings)
            parameters[name], m[name], v[name] = new["theta_new"], new["m_new"], new["v_new"]
        if step % 20 == 0 or step == 1:
            print(f"step {step:4d}  loss {losses[-1]:.6f}", flush=True)
    return losses


def main():
    train()


if __name__ == "__main__":
    main()
'''
