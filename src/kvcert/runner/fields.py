"""What a run says about itself: identity, scores, sizes, provenance."""

from __future__ import annotations

from typing import Any

from kvcert import tasks
from kvcert.grid import Spec, label, run_id, spec_sha256
from kvcert.models import LoadedModel
from kvcert.presses import PRESSES
from kvcert.prompts import Prompt
from kvcert.runner import provenance
from kvcert.runner.answer import text
from kvcert.runner.example import ExampleRuns, Row
from kvcert.runner.record import Run, Trail
from kvcert.tasks import Example, Task


def common_fields(
    spec: Spec,
    run: dict[str, Any],
    model: LoadedModel,
    backend: str,
    prompt: Prompt,
    example: Example,
) -> dict[str, Any]:
    """What all runs of an example have in common."""
    task = spec["task"]
    pressed = any(row["scorer"] in PRESSES for row in spec["rows"]) or spec["scorer"] in PRESSES
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
        "versions": provenance.versions(
            tasks.get(task["name"]).provenance(example), *(["kvpress"] if pressed else [])
        ),
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
        answer, score = text(model, trail.tokens, example.stop), None
        if regime == "free" and trail.broken is None:
            score = task.score(answer, example)
        fields = common | timing | size | kept
        fields |= {"policy": label(row)} | {name: row[name] for name in ("budget", "draw", "scorer")}
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
