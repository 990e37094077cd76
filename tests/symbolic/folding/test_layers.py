"""Layers that people write kernels for, as expressions: the printed gradient, and torch autograd of torch's own layer."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from gradproof.numeric.compile import compile_numpy
from gradproof.symbolic.catalogue.entry import Identity
from gradproof.symbolic.catalogue.proof import prove
from gradproof.symbolic.derive import derive


@dataclass(frozen=True)
class Layer:
    """A loss in the expression language, its gradients as they are printed, and the same loss in torch."""

    name: str
    text: str
    shapes: dict[str, str]
    wrt: str
    printed: list[str]
    torch: Callable[..., torch.Tensor]
    sizes: dict[str, int]


NORM = ["bar(x̂) = G diag(g)", "X̄ = diag(s)⁻¹ (bar(x̂) − rowmean(bar(x̂)) − x̂ ⊙ rowmean(x̂ ⊙ bar(x̂)))", "ḡ = colsum(G ⊙ x̂)"]
BATCH = "X̄ = (G − colmean(G) − x̂ ⊙ colmean(G ⊙ x̂)) diag(s)⁻¹"
ROWS = {"X": "n,d", "G": "n,d"}


def group_norm(X, G):
    n, groups, c, m = X.shape
    return (F.group_norm(X.reshape(n, groups * c, m), groups, eps=1e-5).reshape(X.shape) * G).sum()


def focal(z, y, gamma):
    p = torch.softmax(z, -1)[int(y)]
    return -((1 - p) ** gamma) * torch.log(p)


def plan_step(C, v, a, G, eps):
    kernel = torch.exp(-C / eps)
    return ((a / kernel.mv(v)) * G).sum()


LAYERS = [
    Layer(
        "RMSNorm", "sum(G * (rmsnorm(X, eps=1e-6) * g))", {**ROWS, "g": "d"}, "X,g",
        ["r = √(rowmean(X⊙²) + 10⁻⁶)", "x̂ = diag(r)⁻¹ X", "bar(x̂) = G diag(g)",
         "X̄ = diag(r)⁻¹ (bar(x̂) − x̂ ⊙ rowmean(x̂ ⊙ bar(x̂)))", "ḡ = colsum(G ⊙ x̂)"],
        lambda X, G, g: (F.rms_norm(X, X.shape[-1:], g, 1e-6) * G).sum(), {"n": 3, "d": 4},
    ),
    Layer(
        "RMSNorm by hand", "sum(G * X / sqrt(mean(X**2, axis=1, keepdims=True) + 1e-6) * g)", {**ROWS, "g": "d"}, "X,g",
        ["r = √(rowmean(X⊙²) + 10⁻⁶)", "x̂ = diag(r)⁻¹ X", "bar(x̂) = G diag(g)",
         "X̄ = diag(r)⁻¹ (bar(x̂) − x̂ ⊙ rowmean(x̂ ⊙ bar(x̂)))", "ḡ = colsum(G ⊙ x̂)"],
        lambda X, G, g: (F.rms_norm(X, X.shape[-1:], g, 1e-6) * G).sum(), {"n": 3, "d": 4},
    ),
    Layer(
        "LayerNorm", "sum(G * (layernorm(X, eps=1e-5) * g + b))", {**ROWS, "g": "d", "b": "d"}, "X,g,b",
        ["s = √(rowmean((X − rowmean(X))⊙²) + 10⁻⁵)", "x̂ = diag(s)⁻¹ (X − rowmean(X))", *NORM, "b̄ = colsum(G)"],
        lambda X, G, g, b: (F.layer_norm(X, X.shape[-1:], g, b, 1e-5) * G).sum(), {"n": 3, "d": 4},
    ),
    Layer(
        "LayerNorm in steps",
        "mu = mean(X, axis=1, keepdims=True); c = X - mu; v = mean(c**2, axis=1, keepdims=True);"
        " xhat = c / sqrt(v + 1e-5); sum(G * (xhat * g + b))",
        {**ROWS, "g": "d", "b": "d"}, "X,g,b",
        ["s = √(rowmean((X − rowmean(X))⊙²) + 10⁻⁵)", "x̂ = diag(s)⁻¹ (X − rowmean(X))", *NORM, "b̄ = colsum(G)"],
        lambda X, G, g, b: (F.layer_norm(X, X.shape[-1:], g, b, 1e-5) * G).sum(), {"n": 3, "d": 4},
    ),
    Layer(
        "GroupNorm", "sum(G * layernorm(X, axis=(2,3), eps=1e-5))", {"X": "n,g,c,m", "G": "n,g,c,m"}, "X",
        ["s_ij = √((1/(c m)) Σ_kl (X_ijkl − (1/(c m)) Σ_pq X_ijpq)² + 10⁻⁵)",
         "x̂_ij = (1/s_ij)[X_ij − mean(X_ij)]",
         "X̄_ij = (1/s_ij)[G_ij − mean(G_ij) − mean(G_ij ⊙ x̂_ij) x̂_ij]"],
        group_norm, {"n": 2, "g": 3, "c": 2, "m": 4},
    ),
    Layer(
        "BatchNorm",
        "sum(G * (X - mean(X, axis=0)) / sqrt(mean((X - mean(X, axis=0))**2, axis=0) + 1e-5))", ROWS, "X",
        ["s = √(colmean((X − colmean(X))⊙²) + 10⁻⁵)", "x̂ = (X − colmean(X)) diag(s)⁻¹", BATCH],
        lambda X, G: (F.batch_norm(X, None, None, training=True, eps=1e-5) * G).sum(), {"n": 5, "d": 3},
    ),
    Layer(
        "BatchNorm in steps",
        "mu = mean(X, axis=0); v = mean((X - mu)**2, axis=0); xhat = (X - mu) / sqrt(v + 1e-5); sum(G * xhat)", ROWS,
        "X",
        ["s = √(colmean((X − colmean(X))⊙²) + 10⁻⁵)", "x̂ = (X − colmean(X)) diag(s)⁻¹", BATCH],
        lambda X, G: (F.batch_norm(X, None, None, training=True, eps=1e-5) * G).sum(), {"n": 5, "d": 3},
    ),
    Layer(
        "BatchNorm of images",
        "sum(G * (X - mean(X, axis=(0,2,3), keepdims=True))"
        " / sqrt(mean((X - mean(X, axis=(0,2,3), keepdims=True))**2, axis=(0,2,3), keepdims=True) + 1e-5))",
        {"X": "n,c,h,w", "G": "n,c,h,w"}, "X",
        ["s_j = √((1/(h n w)) Σ_ikl (X_ijkl − (1/(h n w)) Σ_mpq X_mjpq)² + 10⁻⁵)",
         "x̂_ijkl = (1/s_j)[X_ijkl − (1/(h n w)) Σ_mpq X_mjpq]",
         "X̄_ijkl = (1/s_j)[G_ijkl − (1/(h n w)) Σ_mpq G_mjpq − (1/(h n w)) x̂_ijkl Σ_mpq G_mjpq x̂_mjpq]"],
        lambda X, G: (F.batch_norm(X, None, None, training=True, eps=1e-5) * G).sum(), {"n": 3, "c": 2, "h": 2, "w": 3},
    ),
    Layer(
        "convolution", "y[i] = sum[k](w[k]*x[i+k]); sum(y * G)", {"w": "m", "x": "n+m-1", "G": "n"}, "w,x",
        ["w̄_k = Σ_i G_i x_{i+k}", "x̄_k = Σ_{j: k−n < j ≤ k} G_{k−j} w_j"],
        lambda w, x, G: (F.conv1d(x[None, None], w[None, None])[0, 0] * G).sum(), {"m": 3, "n": 4},
    ),
    Layer(
        "convolution with padding", "u = pad(x, 1); y[i] = sum[k](w[k]*u[i+k]); sum(y * G)",
        {"w": "3", "x": "n", "G": "n"}, "w,x",
        ["u_i = where(i ≥ 1 ∧ i < n + 1, x_{i−1}, 0)", "w̄_k = Σ_i G_i u_{i+k}",
         "x̄_i = Σ_{k: i+1−n < k ≤ i+1} G_{i+1−k} w_k"],
        lambda w, x, G: (F.conv1d(x[None, None], w[None, None], padding=1)[0, 0] * G).sum(), {"n": 4},
    ),
    Layer(
        "convolution with stride", "y[i] = sum[k](w[k]*x[2*i+k]); sum(y * G)", {"w": "m", "x": "2*p+m-2", "G": "p"},
        "w,x",
        ["w̄_k = Σ_i G_i x_{2 i+k}", "x̄_k = Σ_{i: 0 ≤ k−2 i < m} G_i w_{k−2 i}"],
        lambda w, x, G: (F.conv1d(x[None, None], w[None, None], stride=2)[0, 0] * G).sum(), {"m": 3, "p": 4},
    ),
    Layer(
        "2-D convolution with channels",
        "y[o,i,j] = sum[c,a,b](K[o,c,a,b]*x[c,i+a,j+b]); sum(G * y)",
        {"K": "q,c,3,2", "x": "c,n+2,m+1", "G": "q,n,m"}, "K,x",
        ["K̄_ab = Σ_ij G_ij x_{·,a+i,b+j}ᵀ", "x̄_ij = Σ_{ab: i−n < a ≤ i, j−m < b ≤ j} K_abᵀG_{·,i−a,j−b}"],
        lambda K, x, G: (F.conv2d(x[None], K)[0] * G).sum(), {"q": 2, "c": 3, "n": 3, "m": 4},
    ),
    Layer(
        "2-D convolution with stride and padding",
        "u = pad(x, 1); y[i,j] = sum[a,b](K[a,b]*u[2*i+a,2*j+b]); sum(G * y)",
        {"K": "3,3", "x": "2*p,2*q", "G": "p,q"}, "K,x",
        ["u_ij = where(i ≥ 1 ∧ j ≥ 1 ∧ i < 2 p + 1 ∧ j < 2 q + 1, x_{i−1,j−1}, 0)",
         "K̄_ab = Σ_ij G_ij u_{2 i+a,2 j+b}",
         "x̄_ij = Σ_{kl: −1 ≤ i−2 k < 2, −1 ≤ j−2 l < 2} G_kl K_{i+1−2 k,j+1−2 l}"],
        lambda K, x, G: (F.conv2d(x[None, None], K[None, None], stride=2, padding=1)[0, 0] * G).sum(), {"p": 2, "q": 3},
    ),
    Layer(
        "max pooling", "y[i] = max[k=0:2](x[2*i+k]); sum(y * G)", {"x": "2*p", "G": "p"}, "x",
        ["y_i = max_{j=0}^1 x_{2 i+j}",
         "x̄_i = Σ_{k: 0 ≤ i−2 k < 2, x_i = y_k} G_k/(Σ_{j=0}^1 1[x_{2 k+j} = y_k])"],
        lambda x, G: (F.max_pool1d(x[None], 2)[0] * G).sum(), {"p": 4},
    ),
    Layer(
        "average pooling", "y[i] = mean[k=0:2](x[2*i+k]); sum(y * G)", {"x": "2*p", "G": "p"}, "x",
        ["x̄_i = (1/2) Σ_{j: 0 ≤ i−2 j < 2} G_j"],
        lambda x, G: (F.avg_pool1d(x[None], 2)[0] * G).sum(), {"p": 4},
    ),
    Layer(
        "GELU", "sum(gelu(x) * c)", {"x": "n", "c": "n"}, "x",
        ["x̄ = (1/2) c ⊙ (1 + erf(x/√2) + √(2/π) x ⊙ exp(−x²/2))"],
        lambda x, c: (F.gelu(x) * c).sum(), {"n": 5},
    ),
    Layer(
        "GELU by tanh", 'sum(gelu(x, approximate="tanh") * c)', {"x": "n", "c": "n"}, "x",
        ["x̄ = (1/2) c ⊙ (1 + √(2/π) x ⊙ (1 + 0.134145 x²) ⊙ (1 − tanh(√(2/π) x ⊙ (1 + 0.044715 x²))²)"
         " + tanh(√(2/π) x ⊙ (1 + 0.044715 x²)))"],
        lambda x, c: (F.gelu(x, approximate="tanh") * c).sum(), {"n": 5},
    ),
    Layer(
        "SwiGLU", "A = X @ W; B = X @ U; sum(G * silu(A) * B)", {"X": "n,d", "W": "d,k", "U": "d,k", "G": "n,k"}, "X,W,U",
        ["A = XW", "B = XU", "B̄ = A ⊙ G ⊙ sigmoid(A)", "Ā = B ⊙ G ⊙ sigmoid(A) ⊙ (1 + A ⊙ (1 − sigmoid(A)))",
         "X̄ = ĀWᵀ + B̄Uᵀ", "W̄ = XᵀĀ", "Ū = XᵀB̄"],
        lambda X, W, U, G: (F.silu(X @ W) * (X @ U) * G).sum(), {"n": 3, "d": 2, "k": 4},
    ),
    Layer(
        "GEGLU", "sum(G * gelu(a) * b)", {"a": "n,d", "b": "n,d", "G": "n,d"}, "a,b",
        ["ā = (1/2) b ⊙ G ⊙ (1 + erf(a/√2) + √(2/π) a ⊙ exp(−a⊙²/2))", "b̄ = (1/2) a ⊙ G ⊙ (1 + erf(a/√2))"],
        lambda a, b, G: (F.gelu(a) * b * G).sum(), {"n": 3, "d": 2},
    ),
    Layer(
        "GLU", "sum(G * sigmoid(a) * b)", {"a": "n,d", "b": "n,d", "G": "n,d"}, "a,b",
        ["ā = b ⊙ G ⊙ sigmoid(a) ⊙ (1 − sigmoid(a))", "b̄ = G ⊙ sigmoid(a)"],
        lambda a, b, G: (F.glu(torch.cat([b, a], -1)) * G).sum(), {"n": 3, "d": 2},
    ),
    Layer(
        "InfoNCE", "S = U @ V.T / tau; -mean(diag(log_softmax(S, axis=1)))", {"U": "n,d", "V": "n,d", "tau": ""}, "U,V,tau",
        ["S = UVᵀ/τ", "P = softmax(S)", "S̄ = (1/n)[P − I]", "Ū = S̄V/τ", "V̄ = S̄ᵀU/τ", "τ̄ = −sum(V ⊙ (S̄ᵀU))/τ²"],
        lambda U, V, tau: F.cross_entropy(U @ V.T / tau, torch.arange(len(U))), {"n": 4, "d": 3},
    ),
    Layer(
        "focal loss of two classes", "p = sigmoid(z); -y*(1-p)**2*log(p) - (1-y)*p**2*log(1-p)", {"z": "", "y": ""}, "z",
        ["p = sigmoid(z)"],
        lambda z, y: -y * (1 - z.sigmoid()) ** 2 * F.logsigmoid(z) - (1 - y) * z.sigmoid() ** 2 * F.logsigmoid(-z), {},
    ),
    Layer(
        "focal loss", "p = softmax(z); -(1 - p[y])**gamma * log(p[y])", {"z": "n", "y": ":index=n", "gamma": ""}, "z",
        ["p = softmax(z)"], focal, {"n": 4},
    ),
    Layer(
        "KL term of a VAE", "sum(mu**2 + exp(v) - v - 1) / 2", {"mu": "d", "v": "d"}, "mu,v",
        ["μ̄ = μ", "v̄ = (exp(v) − 1)/2"],
        lambda mu, v: torch.distributions.kl_divergence(
            torch.distributions.Normal(mu, (v / 2).exp()), torch.distributions.Normal(0.0, 1.0)
        ).sum(), {"d": 4},
    ),
    Layer(
        "Sinkhorn step", "K = exp(-C/eps); u = a / (K @ v); sum(u * G)",
        {"C": "n,m", "v": "m", "a": "n", "G": "n", "eps": ""}, "C,v,a",
        ["K = exp(−C/ε)", "C̄ = diag(a ⊙ G) diag(Kv)⁻² K diag(v)/ε", "v̄ = −Kᵀ(a ⊙ G ⊘ (Kv)²)", "ā = G ⊘ (Kv)"],
        plan_step, {"n": 3, "m": 4},
    ),
    Layer(
        "cosine similarity", "(x @ y) / (norm(x) * norm(y))", {"x": "n", "y": "n"}, "x,y",
        ["r = ‖x‖", "r₁ = ‖y‖", "x̄ = (1/(r r₁))[y − x(xᵀy)/r²]", "ȳ = (1/(r r₁))[x − y(xᵀy)/r₁²]"],
        lambda x, y: F.cosine_similarity(x, y, dim=0), {"n": 4},
    ),
]  # fmt: skip


def arrays_of(layer: Layer) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(len(layer.text))
    found = {}
    for name, shape in layer.shapes.items():
        sizes, *property_ = shape.split(":")
        extents = [int(eval(size, {}, layer.sizes)) for size in sizes.split(",") if size]
        found[name] = rng.integers(0, 3, extents) if property_ else rng.normal(size=extents)
        if name in ("tau", "eps", "gamma", "v", "a") and not property_:
            found[name] = np.abs(found[name]) + 0.5
    return found


@pytest.mark.parametrize("layer", LAYERS, ids=[layer.name for layer in LAYERS])
def test_printed_form(layer: Layer) -> None:
    printed = derive(layer.text, layer.shapes, layer.wrt).lines()
    if layer.name.startswith("focal"):
        assert set(layer.printed) <= set(printed)
    else:
        assert printed == layer.printed


@pytest.mark.parametrize("layer", LAYERS, ids=[layer.name for layer in LAYERS])
def test_equals_torch(layer: Layer) -> None:
    arrays, wrt = arrays_of(layer), layer.wrt.split(",")
    value, gradients = compile_numpy(derive(layer.text, layer.shapes, wrt))(**arrays)
    tensors = {name: torch.tensor(array, requires_grad=name in wrt) for name, array in arrays.items()}
    expected = layer.torch(**tensors)
    assert abs(value - expected.item()) <= 1e-10 * max(1, abs(expected.item()))
    for name, gradient in zip(wrt, torch.autograd.grad(expected, [tensors[n] for n in wrt]), strict=True):
        scale = max(1.0, gradient.abs().max().item())
        assert np.abs(gradients[name] - gradient.numpy()).max() <= 1e-10 * scale, name


ONLINE = (
    "m[0] = z[0]; l[0] = 1; m[t+1] = maximum(m[t], z[t+1]); l[t+1] = l[t]*exp(m[t] - m[t+1]) + exp(z[t+1] - m[t+1]);"
)
IDENTITIES = [
    (
        "blockwise softmax",
        "P[b,j] = exp(z[b,j])/sum[a,i](exp(z[a,i]))",
        "m[b] = max[j](z[b,j]); l[b] = sum[j](exp(z[b,j] - m[b])); M = max[b](m[b]); L = sum[b](l[b]*exp(m[b] - M));"
        " P[b,j] = exp(z[b,j] - m[b])*exp(m[b] - M)/L",
        {"z": "b,w"},
        "proved",
    ),
    ("online softmax", "softmax(z)", ONLINE + "P[i] = exp(z[i] - m[n-1])/l[n-1]", {"z": "n"}, "proved"),
    (
        "online attention",
        "softmax(z) @ V",
        ONLINE + "o[0,k] = V[0,k]; o[t+1,k] = o[t,k]*exp(m[t] - m[t+1]) + exp(z[t+1] - m[t+1])*V[t+1,k];"
        " R[k] = o[n-1,k]/l[n-1]",
        {"z": "n", "V": "n,d"},
        "proved",
    ),
    ("wrong online softmax", "softmax(z)", ONLINE + "P[i] = exp(z[i])/l[n-1]", {"z": "n"}, "refuted"),
]


@pytest.mark.parametrize(("name", "left", "right", "shapes", "verdict"), IDENTITIES, ids=[row[0] for row in IDENTITIES])
def test_identity(name: str, left: str, right: str, shapes: dict[str, str], verdict: str) -> None:
    assert prove(Identity(left, right, shapes)).verdict == verdict
