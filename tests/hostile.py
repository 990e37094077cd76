"""Random and mutated inputs for the language; run as a script it tries them in a process with limits.

    python tests/hostile.py COUNT SEED        prints a line of JSON for every input that went wrong

An input goes well if it gives a derivation or a GradproofError within the limits, and touches nothing outside.
"""

import json
import random
import re
import resource
import signal
import sys
from pathlib import Path

SECONDS = 120.0  # of processor time: what takes longer hangs
MEMORY = 3 * 1024**3
PIECES = """
+ - * / ** @ ( ) [ ] , ; : = == < > <= >= != . .T .mT ' " # \\ \n \t { } ! $ % & | ~ ^ ` lambda if else for in not and or is
True None sum mean max min prod exp log log1p sqrt abs sin tanh sigmoid relu gelu erf softmax log_softmax logsumexp
layernorm rmsnorm where norm tr trace det logdet inv solve diag outer kron eye ones zeros einsum vec pad delta clip
maximum axis= keepdims= axis=-1 sum[i]( sum[i,j]( sum[t=0:n]( max[k]( A[i,j] x[i] x[i+1] x[2*i] A[0] x[1:] x[::-1]
x[::0] A[:,None] h[0]= h[t+1]= L= pi e inf nan 0 1 2 -1 0.5 1e400 1e-400 9**9**9 10**100000 0x10 1j 007 1_000
999999999999 x y A B S n m d lam i j k t é ∂ 𝐱 ᵀ \x00 \ud800
""".replace("\n", " ").split(" ")
ATTACKS = (
    "__import__('os').system('touch MARK')",
    "open('MARK', 'w')",
    'exec(\'open("MARK","w")\')',
    "eval('1')",
    "().__class__.__bases__[0].__subclasses__()",
    "x.__class__",
    "x.__init__.__globals__",
    "(lambda: 1)()",
    "[y for y in x]",
    "{**x}",
    "f'{x}'",
    "(x := 1)",
    "print(x)",
    "sum(*x)",
    "exit()",
    "input()",
    "globals()",
    "sympy.sympify('1')",
)
SHAPES = ("x:n", "y:n", "A:n,n", "B:n,m", "S:n,n:symmetric", "lam", "w:n:index=n", "X:3,4", "p:n:simplex", "v:n+m-1")
WRONG = (
    "x:",
    "x:0",
    "x:-1",
    "x:n,",
    "x:n:nothing",
    ":n",
    "1:n",
    "x:n**2",
    "x:n/2",
    "x:x",
    "x:n:index=",
    "x:n,n:iid=0",
    "__x__:n",
    "x:1000000",
    "x:10**9",
    "x:" + "n," * 40,
)
SEEDS = (
    "sum((A @ B)**2)",
    "x @ A @ x / (1 + norm(x)**2)",
    "logsumexp(A @ x) + lam * sum(x**2)",
    "sum(softmax(A, axis=1) * A)",
    "R[i,j] = sum[k](A[i,k]*A[k,j]); sum[i,j](R[i,j]**2)",
    "h[0,k] = x[k]; h[t+1,k] = tanh(sum[l](A[k,l]*h[t,l]) + y[t]); sum(h**2)",
    "sum[t=0:n-1](x[t]*x[t+1])",
    "-logdet(S)/2 - x @ inv(S) @ x / 2",
    "sum(where(x > 0, log(x), 0) * layernorm(y, eps=1e-5))",
    "sum[t](A[w[t],t] * x[t])",
    "trace(kron(X, X.T)) + sum(pad(x, 1))",
    "max(x) + prod(1 + x**2) + sum(einsum('ij,j->i', A, x))",
)
KINDS = (
    ("x", "y", "p", "v"),
    ("A", "S", "B", "X"),
    (
        "exp",
        "log",
        "tanh",
        "sqrt",
        "abs",
        "relu",
        "gelu",
        "erf",
        "softmax",
        "logsumexp",
        "layernorm",
        "norm",
        "max",
        "sum",
    ),
    ("trace", "det", "logdet", "inv", "diag", "sum", "prod", "mean"),
    ("0", "1", "2", "3", "7", "100"),
    ("i", "j", "k", "t"),
)


def mutated(rng: random.Random, text: str) -> str:
    """A valid text with some characters or pieces dropped, doubled, exchanged or put in."""
    parts = list(text)
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        place = rng.randrange(len(parts) + 1)
        match rng.randrange(6):
            case 0:
                del parts[place : place + rng.choice((1, 1, 2, 8))]
            case 1:
                parts[place:place] = [rng.choice(PIECES)]
            case 2:
                parts[place:place] = parts[max(place - rng.randrange(1, 9), 0) : place]
            case 3:
                parts[place : place + 1] = [rng.choice(PIECES)]
            case 4:
                parts[place:place] = [rng.choice(ATTACKS)]
            case _:
                parts[place:place] = rng.choice(
                    (["("] * 60, ["-"] * 200, ["x", "+"] * 300, ["exp("] * 40, ["**2"] * 12, ["@A"] * 30)
                )
    return "".join(parts)


def exchanged(rng: random.Random, text: str) -> str:
    """A valid text with some names exchanged for names of the same kind: often valid again."""
    parts = re.split(r"(\w+)", text)
    for _ in range(rng.choice((1, 2, 4))):
        places = [(k, kind) for k, part in enumerate(parts) for kind in KINDS if part in kind]
        place, kind = rng.choice(places)
        parts[place] = rng.choice(kind)
    return "".join(parts)


def case(rng: random.Random) -> tuple[str, list[str]]:
    """A text and its declarations."""
    kind = rng.random()
    if kind < 0.25:
        text = " ".join(rng.choice(PIECES) for _ in range(rng.randrange(1, 25)))
    elif kind < 0.3:
        text = "".join(chr(rng.randrange(1, 0x3000)) for _ in range(rng.randrange(1, 60)))
    else:
        text = (mutated if kind < 0.7 else exchanged)(rng, rng.choice(SEEDS))
    declared = list(SHAPES) if rng.random() < 0.8 else [s for s in SHAPES if rng.random() < 0.9]
    if rng.random() < 0.15:
        declared.append(rng.choice(WRONG))
    if rng.random() < 0.05:
        declared.append(mutated(rng, rng.choice(SHAPES)))
    rng.shuffle(declared)
    return text, declared


class OutOfTime(BaseException):
    pass


def attempt(text: str, declared: list[str]) -> str:
    """What went wrong with an input: "" if nothing."""
    from gradproof.symbolic.derive import derive
    from gradproof.symbolic.errors import GradproofError
    from gradproof.symbolic.language.reader import declare

    def stop(*_: object) -> None:
        raise OutOfTime

    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        try:
            derive(text, declare(*declared), None)
        except GradproofError as error:
            if "no scalar" in str(error):
                derive(text, declare(*declared), None, "G_out")
        return ""
    except GradproofError:
        return ""
    except OutOfTime:
        return "time"
    except BaseException as error:
        import traceback

        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} {Path(where.filename).name}:{where.lineno} {str(error)[:80]}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


FORBIDDEN = (
    "os.system",
    "subprocess.Popen",
    "os.exec",
    "os.posix_spawn",
    "socket.connect",
    "builtins.input",
    "os.remove",
)


def main(count: int, seed: int) -> None:
    touched: list[str] = []

    def audit(event: str, args: tuple[object, ...]) -> None:
        written = event == "open" and any(mode in str(args[1] or "") for mode in "wax+")
        if event in FORBIDDEN or written:
            touched.append(event)

    from gradproof.symbolic.derive import derive

    derive("sum(tanh(x) * softmax(x)) + logdet(A)", {"x": "n", "A": "n,n"})  # imports what is imported late
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.addaudithook(audit)
    rng = random.Random(seed)
    for number in range(count):
        text, declared = case(rng)
        wrong = attempt(text, declared) or (f"touched {touched[0]}" if touched else "")
        touched.clear()
        if wrong:
            print(json.dumps({"number": number, "wrong": wrong, "text": text, "declared": declared}))
            sys.stdout.flush()
    print(json.dumps({"tried": count, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
