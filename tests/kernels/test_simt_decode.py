"""The device kernels' own text, executed on the CPU, against the float64 reference."""

from __future__ import annotations

import subprocess
from pathlib import Path

import shim
import torch
from problems import agree, paged, problem, reference

F, B, H = torch.float32, torch.bfloat16, torch.float16
#: rows, KV heads, query heads per KV head, query positions, D, tokens, type, splits
MATRIX = [
    (2, 2, 3, 1, 64, 200, F, 4), (1, 1, 1, 1, 64, 65, F, 3), (1, 2, 4, 1, 64, 97, F, 2), (2, 1, 2, 1, 96, 77, F, 3),
    (1, 1, 8, 1, 128, 130, F, 2), (1, 2, 1, 1, 256, 50, F, 5), (1, 1, 3, 5, 64, 90, F, 3), (1, 1, 4, 3, 128, 41, F, 1),
    (1, 2, 3, 1, 64, 130, B, 3), (1, 1, 4, 2, 96, 60, B, 2), (2, 1, 4, 1, 128, 117, B, 3), (1, 1, 2, 1, 256, 33, B, 2),
    (1, 2, 2, 1, 64, 70, H, 2), (1, 1, 3, 1, 96, 61, H, 4), (1, 1, 8, 1, 128, 93, H, 5), (1, 1, 5, 1, 128, 64, H, 2),
]  # fmt: skip


def test_executor_reports_divergence(driver: Path) -> None:
    assert subprocess.run([driver, "selfcheck"], check=False).returncode == 0


def test_matrix_of_shapes_and_schedules(driver: Path, tmp_path: Path) -> None:
    problems, cases = [], []
    for number, (*shape, dtype, splits) in enumerate(MATRIX):
        for schedule in (number, 99 + number):
            p = problem(*shape, dtype=dtype, seed=number, centred=number % 3 > 0)
            certificate = schedule < 99 or number % 3 > 1
            problems.append((p, certificate))
            cases.append(shim.decode_case(p, splits=splits, seed=schedule, certificate=certificate))
    results = shim.decode_results(shim.run(driver, cases, tmp_path), problems)
    for (p, _), y in zip(problems, results, strict=True):
        agree(y, reference(p))


def test_paged_cache_is_the_contiguous_one(driver: Path, tmp_path: Path) -> None:
    flat = [problem(2, 2, 3, 1, 64, 150, seed=5), problem(2, 1, 4, 2, 128, 70, dtype=B, seed=6)]
    cases = [
        shim.decode_case(paged(p, page, seed=1), splits=3, seed=7)
        for p, page in zip(flat, (16, 32), strict=True)
    ]
    for p, y in zip(
        flat, shim.decode_results(shim.run(driver, cases, tmp_path), [(p, True) for p in flat]), strict=True
    ):
        agree(y, reference(p))


def test_result_does_not_depend_on_the_schedule(driver: Path, tmp_path: Path) -> None:
    p = problem(1, 2, 3, 1, 64, 100, seed=3)
    raw = shim.run(driver, [shim.decode_case(p, splits=3, seed=s) for s in (0, 1, 2, 3)], tmp_path)
    part = len(raw) // 4
    assert len({raw[i * part : (i + 1) * part] for i in range(4)}) == 1
