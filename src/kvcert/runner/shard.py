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
from kvcert.grid import Spec, run_id, spec_sha256
from kvcert.kernels import resolve_backend
from kvcert.models import LoadedModel
from kvcert.policies import capacity_of
from kvcert.runner import provenance, trace, writer
from kvcert.runner.example import ExampleRuns, Row, run_example
from kvcert.runner.record import Run, Trail
from kvcert.runner.tables import heads_table, runs_table, steps_table
from kvcert.tasks import Example, Task

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
        found = run_example(spec, model, prompt, backend=backend, implementation=run["attn_implementation"])
        layers = found.panel.layers if found.panel else layers
        common = _common_fields(spec, run, model, backend, prompt, example)
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
    count = prompts.prompt_counter(model.tokenizer)
    pairs = []
    for example in task.examples(spec["task"], spec["seed"], spec["examples"], count, cache / "texts"):
        prompt = prompts.render(model.tokenizer, example, task)
        if len(prompt.ids) + spec["max_new_tokens"] > model.window:
            raise KvcertError(
                f"task {task.name}, example {example.index}: {len(prompt.ids)} prompt tokens and "
                f"{spec['max_new_tokens']} new ones exceed the window of {model.name} ({model.window}): lower its length"
            )
        for row in spec["rows"]:
            capacity_of(row["budget"], prompt.n_context, spec["constants"])
        pairs.append((example, prompt))
    return pairs


def _common_fields(
    spec: Spec,
    run: dict[str, Any],
    model: LoadedModel,
    backend: str,
    prompt: prompts.Prompt,
    example: Example,
) -> dict[str, Any]:
    task = spec["task"]
    return {
        "shard": spec["shard"],
        "model": model.name,
        "task": task["name"],
        "length": task["length"],
        "example": example.index,
        "prompt_tokens": len(prompt.ids),
        "context_tokens": prompt.n_context,
        "prompt_sha256": prompt.sha256,
        "answers": list(example.answers),
        "fail_below": float(task["fail_below"]),
        "spec_sha256": spec_sha256(spec),
        "backend": backend,
        "device": run["device"],
        "dtype": spec["model"]["dtype"],
        "threads": run["threads"],
        "versions": provenance.versions(),
    }


def example_runs(
    spec: Spec, model: LoadedModel, task: Task, example: Example, found: ExampleRuns, common: dict[str, Any]
) -> list[Run]:
    """The example's runs in the order of `expected_run_ids`."""
    runs = []
    full_spec = next((row for row in spec["rows"] if row["policy"] == "full"), None)
    seconds = found.seconds_decode / max(1, len(found.rows) + 1)
    timing = {"seconds_prefill": found.seconds_prefill, "seconds_decode": seconds}
    token_bytes = 2 * model.head_dim * found.context.keys[0].element_size()
    units = model.n_layers * model.n_kv_heads
    size = {"full_bytes": found.n * units * token_bytes}

    def build(
        setting: str, row: dict[str, Any], regime: str, trail: Trail, kept: dict[str, Any], item: Row | None
    ) -> Run:
        answer, score = _answer(model, trail), None
        if regime == "free" and trail.broken is None:
            score = task.score(answer, example)
        fields = common | timing | size | kept
        fields |= {name: row[name] for name in ("policy", "budget", "draw", "scorer")}
        fields |= {
            "run_id": run_id(spec, example.index, setting, row, regime),
            "setting": setting,
            "regime": regime,
            "valid": trail.broken is None,
            "invalid_reason": trail.broken,
            "answer": answer,
            "token_ids": trail.tokens,
            "score": score,
            "fail": None if score is None else score < spec["task"]["fail_below"],
        }
        certified = item is not None and item.certified
        return Run(fields, trail, certified, _sizes(found, item) if certified and item is not None else None)

    whole = {
        "identity": True,
        "capacity": found.n,
        "kept_tokens": float(found.n),
        "kept_bytes": size["full_bytes"],
        "evicted_mass": 0.0,
        "tail_expected": None,
        "tail_kept": None,
    }
    for setting in spec["settings"]:
        members = [row for row in found.rows if row.setting == setting]
        kept = {id(row): _kept(row, found.n, token_bytes) for row in members}
        by_row = {run_id(spec, 0, setting, row.spec, "free"): row for row in members}
        ordered = [
            by_row[run_id(spec, 0, setting, row, "free")] for row in spec["rows"] if row["policy"] != "full"
        ]
        if full_spec is not None:
            runs.append(build(setting, full_spec, "free", found.full, whole, None))
        runs += [
            build(setting, row.spec, "free", row.free, kept[id(row)], row) for row in ordered if row.free
        ]
        runs += [
            build(setting, row.spec, "forced", row.forced, kept[id(row)], row)
            for row in ordered
            if row.forced
        ]
    return runs


def _answer(model: LoadedModel, trail: Trail) -> str:
    ids = [token for token in trail.tokens if token not in model.stop_ids]
    return str(model.tokenizer.decode(ids, skip_special_tokens=True))


def _kept(row: Row, n: int, token_bytes: int) -> dict[str, Any]:
    keep, tail = row.selection.keep, row.selection.log_pi < 0
    kept = int(keep.sum())
    # log pi is one float32 a retained token, needed by certified rows alone.
    return {
        "identity": bool(keep.all()) and not bool(tail.any()),
        "capacity": row.capacity,
        "kept_tokens": float(keep.sum(-1).double().mean()),
        "kept_bytes": kept * (token_bytes + (4 if row.certified else 0)),
        "evicted_mass": row.evicted_mass,
        "tail_expected": float(row.selection.expected.mean()) if row.certified else None,
        "tail_kept": float((keep & tail).sum(-1).double().mean()) if row.certified else None,
    }


def _sizes(found: ExampleRuns, item: Row) -> dict[str, Any]:
    """Tail sizes of every panel pair, arrays [panel layers, H]."""
    assert found.panel is not None
    row = next(i for i, other in enumerate(found.rows) if other is item)
    panel = found.panel
    return {
        "m": panel.expected[:, row].float().cpu().numpy(),
        "tail_kept": panel.tail_kept[:, row].cpu().numpy(),
        "tail": panel.tail[:, row].cpu().numpy(),
    }
