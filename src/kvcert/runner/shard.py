"""A shard: its examples one after the other, then its files."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch

from kvcert import models, prompts, tasks
from kvcert.errors import KvcertError
from kvcert.grid import Spec, spec_sha256
from kvcert.kernels import resolve_backend
from kvcert.models import LoadedModel
from kvcert.policies import capacity_of
from kvcert.runner import trace, writer
from kvcert.runner.episode import run_episode
from kvcert.runner.example import run_example
from kvcert.runner.fields import common_fields, example_runs
from kvcert.runner.record import Run
from kvcert.runner.tables import heads_table, runs_table, steps_table
from kvcert.tasks import Example

Report = Callable[[str], None]


def say(text: str) -> None:
    """Progress goes to the error stream, line by line: it ends up in the job's log."""
    print(text, file=sys.stderr, flush=True)


def run_shard(spec: Spec, run: dict[str, Any], progress: Report | bool = True) -> bool:
    """Run every cell of a shard and write its three tables (and its trace).

    Parameters
    ----------
    spec : from `kvcert.grid.shards`. run : the operational part of the configuration.

    Returns
    -------
    False when the very same shard was already there and nothing was done.
    """
    report: Report = progress if callable(progress) else say if progress else lambda text: None
    results, name, digest = Path(run["results"]), spec["shard"], spec_sha256(spec)
    traced = trace.path(results, name) if run["trace_examples"] > 0 else None
    job = os.environ.get("SLURM_JOB_ID")
    report(f"{name}: host {platform.node()}, process {os.getpid()}" + (f", Slurm job {job}" if job else ""))
    with writer.sole_writer(results, name):
        if writer.already_written(results, name, digest) and (traced is None or traced.is_file()):
            report(f"{name}: already there, nothing to do")
            return False
        torch.set_num_threads(run["threads"])
        with torch.inference_mode():
            tables, traces = measure(spec, run, report)
        if traced is not None:
            trace.write(results, name, traces)
        writer.write(results, name, digest, tables)
    return True


def measure(
    spec: Spec, run: dict[str, Any], report: Report
) -> tuple[dict[str, pa.Table], dict[str, torch.Tensor]]:
    """Run a shard's examples one after the other: its three tables and its traces."""
    cache, name, count = Path(run["cache"]), spec["shard"], len(spec["examples"])
    model = models.load(spec["model"], cache, device=run["device"])
    backend = resolve_backend(run["backend"], run["device"])
    task = tasks.get(spec["task"]["name"])
    runs: list[Run] = []
    traces: dict[str, torch.Tensor] = {}
    layers, started = [0], time.monotonic()
    for done, (example, prompt) in enumerate(load_examples(spec, model, cache), 1):
        measured = run_episode if prompt.stages else run_example
        found = measured(
            spec,
            model,
            prompt,
            backend=backend,
            implementation=run["attn_implementation"],
            stop=example.stop,
        )
        layers = found.panel.layers if found.panel else layers
        common = common_fields(spec, run, model, backend, prompt, example)
        runs += example_runs(spec, model, task, example, found, common)
        if done <= run["trace_examples"]:
            traces |= trace.collect(example.index, found)
        spent = time.monotonic() - started
        left = spent / done * (count - done)
        report(f"{name}: example {done}/{count}, {spent:.0f} s, about {left:.0f} s left")
    tables = {
        "runs": runs_table(runs, spec["constants"]["signal_steps"]),
        "steps": steps_table(runs),
        "heads": heads_table(
            runs,
            layers,
            model.n_heads,
            model.n_kv_heads,
            every=spec.get("heads_every", 1),
            panel_only=run.get("heads") == "panel",
        ),
    }
    return tables, traces


def load_examples(spec: Spec, model: LoadedModel, cache: Path) -> list[tuple[Example, prompts.Prompt]]:
    """The shard's examples with their rendered prompts; everything that can be refused is refused here."""
    task = tasks.get(spec["task"]["name"])
    task.check_answer(spec["max_new_tokens"])
    count = prompts.prompt_counter(model.tokenizer)
    pairs = []
    for example in task.examples(spec["task"], spec["seed"], spec["examples"], count, cache / "texts"):
        prompt = prompts.render(model.tokenizer, example, task)
        where = prompts.where(example, task)
        if len(prompt.ids) + spec["max_new_tokens"] > model.window:
            raise KvcertError(
                f"{where}: {len(prompt.ids)} prompt tokens and "
                f"{spec['max_new_tokens']} new ones exceed the window of {model.name} ({model.window}): lower its length"
            )
        for row in spec["rows"]:
            try:
                for n in prompt.stages or (prompt.n_context,):
                    capacity_of(row["budget"], n, spec["constants"])
            except KvcertError as error:
                raise KvcertError(f"{where}: {error}") from None
        pairs.append((example, prompt))
    return pairs
