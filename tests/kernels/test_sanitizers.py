"""Address and undefined-behaviour sanitizers over the device kernels' text and over the twin."""

from __future__ import annotations

from pathlib import Path

import pytest
import shim
import torch
from hostile import HOSTILE
from problems import paged, problem
from test_draws import random_case

# One worker, so that the twin is compiled once.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("sanitizers")]
#: Cases whose shape, not only their values, is unusual.
UNUSUAL = ("one_token", "empty_tail", "longest_padding", "early_query_sees_nothing")


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("sanitized") / "twin"
    return shim.build(target, "twin_driver.cpp", *shim.SANITIZE, "-fopenmp", "-march=native")


def test_device_kernels_are_clean(tmp_path: Path) -> None:
    driver = shim.build(tmp_path / "driver", "driver.cpp", *shim.SANITIZE, "-DFEW")
    cases = [shim.decode_case(HOSTILE[name](), splits=4, seed=5) for name in UNUSUAL]
    cases.append(
        shim.decode_case(problem(1, 1, 4, 1, 96, 40, dtype=torch.bfloat16, spare=0), splits=3, seed=1)
    )
    cases.append(shim.decode_case(paged(problem(1, 2, 3, 1, 64, 50), 16), splits=2, seed=2))
    g = torch.Generator().manual_seed(3)
    for _ in range(2):
        e = random_case(g)
        cases.append(shim.evict_case(e, e["k"].shape[2], seed=4))
    shim.run(driver, cases, tmp_path)


def test_twin_is_clean(twin: Path, tmp_path: Path) -> None:
    cases = [shim.twin_case(make()) for make in HOSTILE.values()]
    for shape in ((1, 2, 3, 17, 64, 90), (1, 1, 1, 1, 24, 33), (2, 1, 8, 1, 128, 65), (1, 1, 2, 30, 40, 31)):
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            p = problem(
                *shape, dtype=dtype, spare=0
            )  # no spare slots: reading past the end is reading past the memory
            cases += [shim.twin_case(p), shim.twin_case(p, certificate=False)]
    shim.run(twin, cases, tmp_path)


def test_the_sanitizer_is_awake(twin: Path, tmp_path: Path) -> None:
    """Memory cut short by one row must be reported, or the tests above prove nothing."""
    p = problem(1, 1, 1, 1, 64, 70, spare=0, ragged=False)
    short = p | {"k": p["k"][:, :, :69].clone()}
    with pytest.raises(AssertionError, match="AddressSanitizer"):
        shim.run(twin, [shim.twin_case(short)], tmp_path)
