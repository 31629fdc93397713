"""X4: what the certificate costs per decode step, for every backend that works here. Ratios on one machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from kvcert import models
from kvcert.exhibits import registration
from kvcert.exhibits.outcome import Measured, record
from kvcert.exhibits.overhead_cells import kernel_cell, step_cell
from kvcert.exhibits.timing import machine
from kvcert.kernels.dispatch import missing
from kvcert.models import LoadedModel

Progress = Callable[[str], None]
#: Backend → device it is timed on.
BACKENDS = {"cpu": "cpu", "torch": "cpu", "cuda": "cuda"}


def measure(config: dict[str, Any], root: Path, progress: Progress) -> dict[str, Any]:
    """Time every backend on the first model of the grid and record the ratios."""
    parameters, started = registration.load(root)["X4"]["parameters"], time.monotonic()
    absent, rows = {name: missing(name) for name in BACKENDS}, []
    torch.set_num_threads(1)
    with torch.inference_mode():
        for backend, device in BACKENDS.items():
            if absent[backend] is None:
                model = models.load(config["study"]["models"][0], Path(config["run"]["cache"]), device=device)
                rows += cells(model, backend, device, parameters)
                progress(f"X4: backend {backend}, {time.monotonic() - started:.0f} s")
            else:
                progress(f"X4: backend {backend} is not there: {absent[backend]}")
    table = pd.DataFrame(rows)
    about = {
        "machine": machine("cpu"), "device": machine("cuda") if absent["cuda"] is None else None, "threads": 1,
        "model": config["study"]["models"][0]["name"], "repeats": parameters["repeats"], "paper": parameters["paper"],
        "seconds": round(time.monotonic() - started, 1),
    }  # fmt: skip
    return record(Path(config["run"]["results"]), root, "X4", expectations(table, absent), {"": table}, about)


def cells(model: LoadedModel, backend: str, device: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    """One row per (what, rows, tokens): milliseconds of the contenders and their ratios."""
    found = []
    for what, lengths, cell in (
        ("kernel", parameters["tokens"], kernel_cell),
        ("step", parameters["step_tokens"], step_cell),
    ):
        for tokens in lengths:
            for rows in parameters["rows"]:
                times = cell(model, backend, device, rows, tokens, parameters["repeats"])
                found.append(
                    {
                        "what": what,
                        "backend": backend,
                        "rows": rows,
                        "tokens": tokens,
                        **{f"{name}_ms": value for name, value in times.items()},
                        "ratio": times["on"] / times["off"],
                        "two_pass_ratio": times["two_pass"] / times["on"] if "two_pass" in times else None,
                    }
                )
    return found


def expectations(table: pd.DataFrame, absent: dict[str, str | None]) -> dict[str, Measured]:
    """Medians over the cells; a backend that is missing is not measured, with the reason."""

    def middle(what: str, backend: str, column: str = "ratio") -> Measured:
        if absent[backend] is not None:
            return Measured(None, note=str(absent[backend]))
        some = table[(table["what"] == what) & (table["backend"] == backend)][column].astype(float)
        return Measured(
            float(some.median()),
            float(some.min()),
            float(some.max()),
            len(some),
            "interval: range over the cells",
        )

    found = {
        f"x4.{what}_{backend}": middle(what, backend) for what in ("kernel", "step") for backend in BACKENDS
    }
    return found | {"x4.two_pass_cpu": middle("kernel", "cpu", "two_pass_ratio")}
