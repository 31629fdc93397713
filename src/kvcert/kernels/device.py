"""Arguments and launch geometry of the device kernels: pure arithmetic, shared by the GPU path and its CPU tests."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import torch

from kvcert.errors import KvcertError

WARPS, EVICT_WARPS, HEAD = 4, 8, 8
HEAD_DIMS = (64, 96, 128, 256)
TYPES = {torch.float32: "float", torch.bfloat16: "kvc::bf16", torch.float16: "kvc::half16"}


def _struct(name: str, text: str) -> type[ctypes.Structure]:
    kinds = {
        "p": ctypes.c_void_p,
        "l": ctypes.c_int64,
        "i": ctypes.c_int32,
        "u": ctypes.c_uint32,
        "f": ctypes.c_float,
    }
    fields = [(field, kinds[word[0]]) for word in text.split() for field in word[2:].split(",")]
    return type(name, (ctypes.Structure,), {"_fields_": fields})


#: Mirrors of `DeviceDecode` and `DeviceEvict`, field by field.
DeviceDecode = _struct(
    "DeviceDecode",
    "p:q,k,v,log_pi,centre,begin,pages,partial,out,stats l:k0,k1,k2,v0,v1,v2,p0,p1,t0,t1 "
    "i:H,Hkv,T,end,rows_of_head,chunks,splits,keys,page_shift,plane f:scale,level",
)
DeviceEvict = _struct(
    "DeviceEvict",
    "p:pi,position,begin,draw,index,count,k,v,log_pi,k_out,v_out,log_pi_out,position_out l:k0,k1,k2,v0,v1,v2 "
    "i:Hkv,n,end,length,row_bytes,element u:seed_lo,seed_hi,layer,example,stage,unused",
)


class DecodePlan(NamedTuple):
    """How one decode is cut. rows : query rows per block (template GB). grid : blocks. record : floats per partial."""

    rows: int
    chunks: int
    splits: int
    keys: int
    grid: tuple[int, int, int]
    record: int
    shared: int
    combine_shared: int


def plan_decode(
    rows: int, heads: int, groups: int, steps: int, dim: int, end: int, certificate: bool, *, processors: int,
    splits: int | None = None,
) -> DecodePlan:  # fmt: skip
    """Blocks for one decode: as many splits of the tokens as give every processor about four blocks, 64 tokens at least."""
    if dim not in HEAD_DIMS:
        raise KvcertError(
            f"kernels: the cuda backend takes head dimensions {HEAD_DIMS}, not {dim}; choose backend: torch"
        )
    of_head = heads // groups * steps
    per = of_head if of_head <= 4 else 3 if of_head % 3 == 0 and of_head % 4 else 4
    chunks = -(-of_head // per)
    wanted = splits or max(1, min(-(-4 * processors // (groups * chunks * rows)), -(-end // 64), 256))
    keys = max(1, -(-end // wanted))
    cut = -(-end // keys)
    record = HEAD + (2 if certificate else 1) * dim
    return DecodePlan(
        per,
        chunks,
        cut,
        keys,
        (cut, groups * chunks, rows),
        record,
        WARPS * per * record * 4,
        2 * (dim // 32) * 4,
    )


def decode_names(dtype: torch.dtype, dim: int, rows: int, certificate: bool) -> tuple[str, str]:
    """Name expressions of the two kernels of one decode."""
    kind, flag = TYPES[dtype], str(certificate).lower()
    return f"kvc::split_decode<{kind},{dim},{rows},{WARPS},{flag}>", f"kvc::combine<{kind},{dim},{flag}>"


EVICT_NAMES = (f"kvc::draw_units<{EVICT_WARPS}>", f"kvc::gather_units<{EVICT_WARPS}>")
EVICT_SHARED = (EVICT_WARPS + 1) * 4
