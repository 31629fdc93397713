"""One shard against the same cells run the usual way, side by side in one run.

The usual way is one call per policy, budget and draw, each with a prefill of its own (context, and the question before or
after compression as the setting asks), greedy decoding, no certificate, no truth, no forced pass. Ours is one prefill for
all of them, with certificate, truth and forced pass. Both use the same model, caches, kernels and one thread; examples
alternate.

    python benchmarks/bench_shard.py [--examples 3] [--task niah] [--config config/config.yaml]

Last line: `ratio usual_over_shard <value>`, seconds of the usual way over seconds of the shard.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import torch

from kvcert import config as configuration
from kvcert import models, policies, scorers
from kvcert.attention import forward
from kvcert.cache.context import ContextCache
from kvcert.cache.retained import RetainedCache
from kvcert.grid import shards
from kvcert.kernels import resolve_backend
from kvcert.runner.example import example_hash, run_example
from kvcert.runner.provenance import processor
from kvcert.runner.record import distribution
from kvcert.runner.shard import load_examples
from kvcert.survey.philox import uniforms


def usual(spec, model, prompt, setting, row, backend) -> int:
    """One cell on its own: prefill, compress, decode; the number of new tokens."""
    constants, n, size = spec["constants"], prompt.n_context, len(prompt.ids)
    ids = torch.tensor([prompt.ids])
    scorer = {spec["scorer"]: scorers.get(spec["scorer"], constants)}
    cache = ContextCache(model, size + spec["max_new_tokens"], int(constants["window"]), scorer)
    forward(model.model, cache, ids[:, :n], 0)
    if setting == "aware" or row["policy"] == "full":
        forward(model.model, cache, ids[:, n:-1], n)
    used = cache
    if row["policy"] != "full":
        z = cache.scores(n)[spec["scorer"]]
        draw = uniforms(
            spec["seed"],
            example_hash(model.name, prompt.sha256),
            torch.arange(n),
            *z.shape[:2],
            draw=row["draw"],
        )
        capacity = policies.capacity_of(row["budget"], n, constants)
        chosen = policies.get(row["policy"]).select(z, capacity, constants, draw)
        used = RetainedCache(cache, [chosen], size - n + spec["max_new_tokens"], backend, constants["delta"])
        if setting == "aware":
            used.append_from(cache, n, size - 1)
        else:
            forward(model.model, used, ids[:, n:-1], n)
    token, new = int(ids[0, -1]), 0
    while new < spec["max_new_tokens"]:
        logits = forward(model.model, used, torch.tensor([[token]]), size - 1 + new)[:, -1]
        token, new = int(distribution(logits)[0]), new + 1
        if token in model.stop_ids:
            break
    return new


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--examples", type=int, default=3)
    parser.add_argument("--task", default="niah")
    parser.add_argument("--config", action="append", default=None)
    options = parser.parse_args()
    config = configuration.load(*map(Path, options.config or ["config/config.yaml"]))
    spec = next(s for s in shards(config) if s["task"]["name"] == options.task)
    spec = spec | {"examples": spec["examples"][: options.examples]}
    torch.set_num_threads(1)
    cache = Path(config["run"]["cache"])
    model = models.load(spec["model"], cache)
    backend = resolve_backend("auto", "cpu")
    cells = [(setting, row) for setting in spec["settings"] for row in spec["rows"]]
    print(f"{processor()}, 1 thread, torch {torch.__version__}, backend {backend}")
    shape = f"{spec['task']['length']} tokens, {len(cells)} cells, {len(spec['examples'])} examples"
    print(f"{model.name}, {options.task}, {shape}")
    times: dict[str, list[float]] = {"shard": [], "usual": []}
    with torch.inference_mode():
        for _, prompt in load_examples(spec, model, cache):
            started = time.perf_counter()
            run_example(spec, model, prompt, backend=backend)
            times["shard"].append(time.perf_counter() - started)
            started = time.perf_counter()
            for setting, row in cells:
                usual(spec, model, prompt, setting, row, backend)
            times["usual"].append(time.perf_counter() - started)
            print(f"  shard {times['shard'][-1]:.1f} s, usual {times['usual'][-1]:.1f} s")
    median = {name: statistics.median(values) for name, values in times.items()}
    print(f"median seconds an example: shard {median['shard']:.2f}, usual {median['usual']:.2f}")
    print(f"ratio usual_over_shard {median['usual'] / median['shard']:.2f}")


if __name__ == "__main__":
    main()
