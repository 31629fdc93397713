"""What X4 times: one attention call, and one decode step of the model, with the certificate and without."""

from __future__ import annotations

import copy
import itertools
import math
from typing import Any

import torch
from torch import Tensor

from kvcert.attention import forward
from kvcert.cache.context import ContextCache
from kvcert.cache.retained import RetainedCache
from kvcert.exhibits.timing import interleaved
from kvcert.kernels import Decoded, decode
from kvcert.models import LoadedModel
from kvcert.policies import Selection
from kvcert.survey.philox import philox4x32

#: Bytes of K and V that the calls of one cell walk through: well above a processor's last cache.
WALK = 96e6
#: log(2 / delta) of the registered radius.
LEVEL = math.log(2.0 / 0.05)


def noise(*shape: int, key: int) -> Tensor:
    """Uniform numbers in (-1, 1), float32, from the counter-based generator."""
    u32 = philox4x32((key, 4), (torch.arange(math.prod(shape)), 0, 0, 0))
    return ((u32.double() + 0.5) / 2**31 - 1.0).float().view(shape)


def two_pass(
    q: Tensor, k: Tensor, v: Tensor, log_pi: Tensor, centre: Tensor, scale: float
) -> tuple[Tensor, ...]:
    """Grouped attention, then the certificate in a second pass over K and V: what one writes without a kernel."""
    rows, _, _, dim = q.shape
    grouped = q.view(rows, k.shape[1], -1, dim)
    p = ((grouped * scale) @ k.transpose(2, 3) - log_pi[:, :, None]).softmax(-1)
    out = p @ v
    x, o = v - centre[:, :, None], out - centre[:, :, None]
    c = -torch.expm1(log_pi)[:, :, None] * p * p
    size = x.square().sum(-1)
    variance = (c @ size[..., None])[..., 0] - 2 * (o * (c @ x)).sum(-1) + o.square().sum(-1) * c.sum(-1)
    sampled = p * (log_pi < 0).to(p.dtype)[:, :, None]
    p_sampled = sampled.amax(-1)
    linear = ((sampled * size.sqrt()[:, :, None]).amax(-1) + o.norm(dim=-1) * p_sampled) * (LEVEL / 3)
    radius = linear + (linear.square() + 2 * variance.clamp_min(0) * LEVEL).sqrt()
    return out, radius, radius / (1 - p_sampled), 1 / p.square().sum(-1), p.amax(-1)


def kernel_cell(
    model: LoadedModel, backend: str, device: str, rows: int, tokens: int, repeats: int
) -> dict[str, Any]:
    """Median milliseconds of one attention call in the model's shape: `on`, `off`, `two_pass`."""
    heads, groups, dim = model.n_heads, model.n_kv_heads, model.head_dim
    layers = min(64, max(1, math.ceil(WALK / (8 * rows * groups * tokens * dim))))
    q = noise(rows, heads, 1, dim, key=1).to(device)
    k, v = (noise(rows, groups, tokens, dim, key=key).to(device) for key in (2, 3))
    walk = itertools.cycle([(k.clone(), v.clone()) for _ in range(layers)])
    log_pi = (3 * noise(rows, groups, tokens, key=4)).clamp_max(0.0).to(device)
    begin = torch.zeros(rows, groups, dtype=torch.int32, device=device)
    centre, scale = v.mean(2), dim**-0.5

    def certified(on: bool) -> Decoded:
        keys, values = next(walk)
        return decode(
            q, keys, values, log_pi, begin, tokens, scale=scale, centre=centre if on else None, certificate=on,
            backend=backend,
        )  # fmt: skip

    contenders = {
        "on": lambda: certified(True),
        "off": lambda: certified(False),
        "two_pass": lambda: two_pass(q, *next(walk), log_pi, centre, scale),
    }
    return interleaved(contenders, repeats, ("kernel", backend, rows, tokens))


def step_cell(
    model: LoadedModel, backend: str, device: str, rows: int, tokens: int, repeats: int
) -> dict[str, Any]:
    """Median milliseconds of one decode step of the whole model: certificate on every layer (`on`) or on none (`off`)."""
    context = ContextCache(model, tokens, 1, {})
    for number, buffer in enumerate((*context.keys, *context.values)):
        buffer.copy_(noise(*buffer.shape, key=10 + number))
    shape = (model.n_layers, model.n_kv_heads, tokens)
    log_pi = (3 * noise(*shape, key=5)).clamp_max(0.0).to(device)
    keep = torch.ones(shape, dtype=torch.bool, device=device)
    expected = torch.ones(shape[:-1], dtype=torch.float64, device=device)
    cache = RetainedCache(context, [Selection(keep, log_pi, expected)] * rows, 1, backend, 0.05)
    every = frozenset(range(model.n_layers))
    ids = torch.zeros(rows, 1, dtype=torch.int64, device=device)

    def step(certified: frozenset[int]) -> None:
        one = copy.copy(cache)
        one.listener, one.certified = (lambda *_: None), certified
        forward(model.model, one, ids, tokens)

    contenders = {"on": lambda: step(every), "off": lambda: step(frozenset())}
    return interleaved(contenders, repeats, ("step", backend, rows, tokens))
