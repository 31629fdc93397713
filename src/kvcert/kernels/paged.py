"""A paged cache laid out flat, for the backends that read no page table."""

from __future__ import annotations

from torch import Tensor

from kvcert.errors import KvcertError


def check_pages(k: Tensor, log_pi: Tensor, pages: Tensor, end: int) -> int:
    """log2 of the page size; refuses a page size that is no power of two or a table too short for `end` tokens."""
    size = k.shape[2]
    if size & (size - 1) or log_pi.shape != k.shape[:3]:
        raise KvcertError(
            f"kernels.decode: page size {size} must be a power of two, log_pi must be {tuple(k.shape[:3])}"
        )
    if pages.dim() != 3 or pages.shape[1] != k.shape[1] or pages.shape[2] * size < end:
        raise KvcertError(
            f"kernels.decode: pages {tuple(pages.shape)} must be [R, Hkv, P] with P * {size} >= end = {end}"
        )
    return size.bit_length() - 1


def flatten_pages(k: Tensor, v: Tensor, log_pi: Tensor, pages: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """k, v [R, Hkv, P * page, D] and log_pi [R, Hkv, P * page] from pools [N, Hkv, page, ...] and a table [R, Hkv, P]."""
    rows, groups, count = pages.shape
    at = pages.to("cpu" if k.device.type == "cpu" else k.device).long()

    def flat(pool: Tensor) -> Tensor:
        heads = at.new_tensor(range(groups))[:, None]
        return pool[at, heads].reshape(rows, groups, count * pool.shape[2], *pool.shape[3:])

    return flat(k), flat(v), flat(log_pi)
