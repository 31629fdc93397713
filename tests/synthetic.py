"""Synthetic logs: every shard of a configuration, schema-conform, with effects that a test can plant.

The world behind them: each example has a full-cache outcome; each evicted run has a latent damage that
grows as the budget shrinks. An example whose full run passes fails when the damage crosses a line; one
whose full run fails keeps failing. The certificate is a monotone function of damage plus noise.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.stats import norm

from kvcert.grid import expected_run_ids, shards, spec_sha256
from kvcert.logs.schema import TABLES

#: What can be planted, with the value of a world in which the paper's surviving claims hold.
EFFECTS: dict[str, Any] = {
    "full_rate": 0.65,  # share of examples whose full run passes: a number or {task: number}
    "attribution": 1.0,  # weight of the run's own damage in its certificate
    "signal_noise": 0.5,  # standard deviation of the certificate's noise (log scale)
    "budget_weight": 1.0,  # how much of the budget's own shift enters the certificate
    "budget_shift": 1.0,  # damage added per halving of the budget
    "line": 1.0,  # damage above which a run fails; larger means less harm
    "aware_shift": -0.5,  # damage added in the aware setting
    "parity": 0.0,  # extra score of Poisson runs (negative: that share of passes is lost)
    "confidence": 0.5,  # how far the mean log-probability falls when a run fails
    "two_run": 0.3,  # share of cache-induced failures on which two draws disagree
    "coverage": 0.99,  # probability that a step's error is below its certificate
    "signal": None,  # a constant certificate, when a number
    "layers": 6,
    "kv_heads": 3,
    "wide": 0,  # query heads outside the panel per (layer, KV head)
    "hook": None,  # hook(table_name, shard, DataFrame) -> DataFrame, applied before writing
    "integrity": True,  # write results/integrity.json as a passing gate would
}
WORDS = np.array(
    [
        "amber",
        "birch",
        "cedar",
        "delta",
        "ember",
        "fjord",
        "grove",
        "heath",
        "islet",
        "jetty",
        "knoll",
        "larch",
    ]
)
Hook = Callable[[str, str, pd.DataFrame], pd.DataFrame]


def write_logs(results: Path, config: dict[str, Any], seed: int = 0, **effects: Any) -> None:
    """Write `runs`, `steps` and `heads` of every shard under `results`; unknown effects are an error."""
    unknown = set(effects) - set(EFFECTS)
    if unknown:
        raise TypeError(f"unknown effects: {sorted(unknown)}")
    world, counts = EFFECTS | effects, Counter[str]()
    for number, spec in enumerate(shards(config)):
        rng = np.random.default_rng([seed, number])
        runs = _runs(spec, config, world, rng)
        heads, steps = _heads_and_steps(runs, spec, world, rng)
        for name, frame in (("runs", runs), ("steps", steps), ("heads", heads)):
            if world["hook"] is not None:
                frame = world["hook"](name, spec["shard"], frame)
            write_table(Path(results), name, spec, frame)
            counts[name] += len(frame)
    if world["integrity"]:
        gate = {"ok": True, "shards": len(shards(config)), **counts, "invalid": 0}
        (Path(results) / "integrity.json").write_text(json.dumps(gate))


def write_table(results: Path, name: str, spec: dict[str, Any], frame: pd.DataFrame) -> None:
    """One Parquet file as a shard writes it: registered schema, zstd, row count and spec hash in the metadata."""
    schema = TABLES[name]
    columns = []
    for field in schema:
        series = frame[field.name]
        if pa.types.is_dictionary(field.type):
            coded = series.astype("category")
            codes = pa.array(coded.cat.codes.to_numpy(np.int32))
            column = pa.DictionaryArray.from_arrays(
                codes, pa.array(coded.cat.categories.astype(str).tolist(), pa.string())
            )
        elif pa.types.is_list(field.type):
            column = pa.array(series.tolist(), field.type)
        else:
            # NaN is a value here (a hook may plant it); None and pd.NA are null.
            missing = (
                [value is None or value is pd.NA for value in series] if series.dtype == object else None
            )
            column = pa.array(series.tolist() if missing else series.to_numpy(), from_pandas=False).cast(
                field.type
            )
        columns.append(column)
    meta = {b"kvcert.rows": str(len(frame)).encode(), b"kvcert.spec": spec_sha256(spec).encode()}
    table = pa.Table.from_arrays(columns, schema=schema.with_metadata(meta))
    path = results / name / f"{spec['shard']}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, compression="zstd")


def _runs(
    spec: dict[str, Any], config: dict[str, Any], world: dict[str, Any], rng: np.random.Generator
) -> pd.DataFrame:
    parts = [run.split("/") for run in expected_run_ids(spec)]
    keys = ["model", "task", "length", "example", "setting", "scorer", "policy", "budget", "draw", "regime"]
    runs = pd.DataFrame(parts, columns=keys)
    runs.insert(0, "run_id", ["/".join(part) for part in parts])
    runs = runs.astype({"length": int, "example": int, "budget": float, "draw": int})
    n, rate = len(runs), world["full_rate"]
    rate = rate.get(spec["task"]["name"], 0.65) if isinstance(rate, dict) else rate
    code = runs["example"].to_numpy() - min(spec["examples"])
    passes = rng.random(len(spec["examples"]))[code] < rate  # the full run, the same in both settings
    full, forced = (runs["policy"] == "full").to_numpy(), (runs["regime"] == "forced").to_numpy()
    poisson = (runs["policy"] == "poisson").to_numpy()

    shift = world["budget_shift"] * np.log2(0.5 / runs["budget"].to_numpy())
    own = 0.6 * rng.standard_normal(len(spec["examples"]))[code] + 0.8 * rng.standard_normal(n)
    damage = own + shift + np.where(runs["setting"] == "aware", world["aware_shift"], 0.0)
    kept = rng.random(n) < 0.95  # inherent failures rarely turn into passes
    ok = np.where(passes, damage < world["line"], ~kept)
    ok = np.where(poisson & (rng.random(n) < -world["parity"]), False, ok)
    ok = np.where(poisson & (rng.random(n) < world["parity"]), True, ok)
    ok = np.where(full, passes, ok)

    signal = (
        world["attribution"] * own
        + world["budget_weight"] * shift
        + world["signal_noise"] * rng.standard_normal(n)
    )
    signal = np.exp(0.4 * signal - 1.0) if world["signal"] is None else np.full(n, float(world["signal"]))
    confidence = -1.0 + world["confidence"] * ok + 0.5 * rng.standard_normal(n)
    agree = np.where(passes & ~ok, rng.random(n) > world["two_run"], rng.random(n) > 0.1)
    words = WORDS[np.where(agree[:, None], code[:, None] + np.arange(3), rng.integers(0, 12, (n, 3))) % 12]

    context = spec["task"]["length"] - 60
    runs = runs.assign(
        shard=spec["shard"],
        valid=True,
        invalid_reason=None,
        identity=full,
        answer=[" ".join(w) for w in words],
        n_steps=rng.integers(min(4, spec["max_new_tokens"]), spec["max_new_tokens"] + 1, n),
        score=np.where(forced, np.nan, ok.astype(float)),
        fail=~ok,
        logp_mean=confidence,
        logp_first6=confidence + 0.1 * rng.standard_normal(n),
        entropy_mean=np.abs(confidence),
        damage=signal,
        context_tokens=context,
        prompt_tokens=context + 60,
        capacity=np.where(full, context, np.floor(runs["budget"] * context + 0.5)).astype(int),
        kept_tokens=np.where(full, 1.0, runs["budget"]) * context,
        kept_bytes=(runs["budget"] * context * 4096).astype(int),
        full_bytes=context * 4096,
        evicted_mass=np.where(full, np.nan, 1 - runs["budget"] ** 0.5 + 0.02 * rng.random(n)),
        tail_expected=np.where(poisson, 20.0, np.nan),
        tail_kept=np.where(poisson, 20.0, np.nan),
        seconds_prefill=3.5,
        seconds_decode=0.5,
        fail_below=spec["task"]["fail_below"],
        spec_sha256=spec_sha256(spec),
        backend="cpu",
        device="cpu",
        dtype="float32",
        threads=1,
        versions="{}",
        prompt_sha256=[
            hashlib.sha256(f"{spec['task']['name']}{e}".encode()).hexdigest() for e in runs["example"]
        ],
    )
    runs["answers"] = [[" ".join(WORDS[np.arange(c, c + 3) % 12])] for c in code]
    runs["token_ids"] = [list(range(steps)) for steps in runs["n_steps"]]
    runs["fail"] = [None if f else bool(x) for f, x in zip(forced, ~ok, strict=True)]
    runs["score"] = [None if f else float(x) for f, x in zip(forced, ok, strict=True)]
    return runs


def _heads_and_steps(
    runs: pd.DataFrame, spec: dict[str, Any], world: dict[str, Any], rng: np.random.Generator
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Heads first; the steps' certificate and error are the panel's means, as in a real shard."""
    counts = runs["n_steps"].to_numpy()
    row = np.repeat(np.arange(len(runs)), counts)
    step = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
    poisson, full = (runs["policy"] == "poisson").to_numpy(), (runs["policy"] == "full").to_numpy()
    certified = np.flatnonzero(poisson[row])
    layers, kv, group = world["layers"], world["kv_heads"], 1 + world["wide"]
    shape = (len(certified), layers, kv, group)
    wobble = 0.0 if world["signal"] is not None else 0.05
    floor = spec["constants"]["floor"]
    norm_hat = np.exp(0.2 * rng.standard_normal(shape))
    relative = runs["damage"].to_numpy()[row[certified]][:, None, None, None] * np.exp(
        wobble * rng.standard_normal(shape)
    )
    # log(error / radius) is normal; its mean is set so that a step is covered with the planted probability.
    spread = 0.4
    ratio = np.exp(spread * (rng.standard_normal(len(certified)) - norm.ppf(world["coverage"])))[
        :, None, None, None
    ]
    error = relative * ratio * np.exp(0.02 * rng.standard_normal(shape))
    scale = np.maximum(norm_hat, floor)
    where = np.indices(shape)
    p_sampled = rng.uniform(0.05, 0.6, shape)
    heads = pd.DataFrame({
        "run_id": runs["run_id"].to_numpy()[row[certified]].repeat(layers * kv * group),
        "step": step[certified].repeat(layers * kv * group), "layer": where[1].ravel() * 5,
        "head": (where[2] * 3 + where[3]).ravel(), "kv_head": where[2].ravel(), "panel": (where[3] == 0).ravel(),
        "variance": ((relative * scale / 2.7) ** 2).ravel(), "bound": (relative * scale / 4).ravel(),
        "radius": (relative * scale).ravel(), "guarded": (relative * scale / (1 - p_sampled)).ravel(),
        "error": (error * scale).ravel(), "norm": norm_hat.ravel(), "norm_true": norm_hat.ravel(),
        "ess": rng.uniform(1, 60, relative.size), "ess_full": rng.uniform(1, 60, relative.size),
        "p_max": p_sampled.ravel(), "p_sampled": p_sampled.ravel(), "r_max": rng.uniform(0.1, 3, relative.size),
        "r_kept": rng.uniform(0.1, 2, relative.size), "m": 20.0, "tail_kept": 20, "tail": 400,
    })  # fmt: skip
    panel = (slice(None), slice(None), slice(None), 0)
    certificate, guarded, true = (np.full(len(row), np.nan) for _ in range(3))
    certificate[certified] = relative[panel].mean(axis=(1, 2))
    guarded[certified] = (relative / (1 - p_sampled))[panel].mean(axis=(1, 2))
    true[certified] = error[panel].mean(axis=(1, 2))
    other = ~poisson[row] & ~full[row]
    true[other] = 0.3 * np.exp(0.3 * rng.standard_normal(other.sum()))
    steps = pd.DataFrame({
        "run_id": runs["run_id"].to_numpy()[row], "step": step, "token_id": step,
        "logp": runs["logp_mean"].to_numpy()[row], "entropy": 0.5, "certificate": _nulls(certificate),
        "guarded": _nulls(guarded), "error": _nulls(true), "units": np.where(full[row], 0, layers * kv),
        "covered": [None if np.isnan(c) else bool(e <= c) for e, c in zip(true, certificate, strict=True)],
    })  # fmt: skip
    first = step <= spec["constants"]["signal_steps"]
    for name, values in (("signal", certificate), ("signal_guarded", guarded), ("error", true)):
        mean = np.bincount(row[first], values[first], len(runs)) / np.bincount(
            row[first], minlength=len(runs)
        )
        runs[name] = _nulls(mean)
    return heads, steps


def _nulls(values: np.ndarray) -> pd.Series:
    """Object series with None where the value is missing, so that Parquet gets nulls and not NaN."""
    return pd.Series([None if np.isnan(value) else float(value) for value in values], dtype=object)
