"""One grid of deterministic cells through kvpress's own pipeline against one shard of ours, side by side in one run.

kvpress, the usual way: one call of `KVPressTextGenerationPipeline` per cell (press x budget, and the full cache), each with
a prefill of its own; the context is compressed before the question is read; greedy decoding; nothing is measured.
Ours: one prefill for all of them, the same presses' scores through `kvpress_*` scorers and `topk` in the streaming setting,
all cells decoded as one batch, no certified row and no forced pass. What a shard always measures (the attention error of
every cell against the full cache) is left in our time; `--bare` leaves it out.

Same model and weights, same token ids (those of kvpress's pipeline), same number of new tokens (end tokens are ignored on
both sides), same number of kept tokens per KV head in every cell (checked: no protected tokens on our side, as the presses
have none), one thread, SDPA prefill on both sides. Examples alternate, and so does which side goes first.

    python benchmarks/bench_kvpress.py [--examples 3] [--task niah] [--length 768] [--new 12] [--bare]

Both clocks are printed. The ratio is that of processor time, so that other programs on the machine do not enter; with one
thread on an idle machine it is the same as that of wall time.

Last line: `ratio kvpress_over_ours <value>`, seconds of kvpress over seconds of ours, median over the examples.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import time
from pathlib import Path

import kvpress
import torch
from transformers import DynamicCache
from transformers.utils import logging

from kvcert import config as configuration
from kvcert import models, tasks
from kvcert.files import sha256_json
from kvcert.grid import expand_rows, shards
from kvcert.kernels import resolve_backend
from kvcert.policies import capacity_of
from kvcert.presses import PRESSES, compression_ratio
from kvcert.prompts import Prompt
from kvcert.runner import example as runner
from kvcert.runner.panel import Panel
from kvcert.runner.provenance import processor, versions
from kvcert.runner.shard import load_examples
from kvcert.scorers.press.library import library

SCORERS = ("kvpress_snapkv", "kvpress_tova", "kvpress_expected_attention", "kvpress_keydiff", "kvpress_knorm")
BUDGETS = (0.125, 0.25, 0.5)


class Deaf(Panel):
    """A panel that does not listen: what the shard costs without its measurements."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.layers = []

    def step_figures(self, taken):
        return {}

    def collect(self):
        return {}


def grid(options: argparse.Namespace) -> dict:
    """The shard: top-k under every press at every budget, streaming, no forced pass, no protected tokens."""
    config = configuration.load(Path("config/config.yaml"))
    study = config["study"]
    study["rows"] = [{"policy": "full", "budgets": [1.0], "draws": 1}] + [
        {"policy": "topk", "budgets": list(BUDGETS), "draws": 1, "scorer": scorer} for scorer in SCORERS
    ]
    study |= {"settings": ["streaming"], "scorer": SCORERS[0], "forced": False, "max_new_tokens": options.new}
    study["constants"] |= {"n_sink": 0, "n_recent": 0}
    study["tasks"] = [
        task | {"length": options.length} for task in study["tasks"] if task["name"] == options.task
    ]
    config = configuration.resolve(config)
    spec = shards(config)[0]
    assert spec["rows"] == expand_rows(study)
    return spec | {"examples": list(range(options.examples))}


def press_of(row: dict, kept: int, n: int, constants: dict):
    """kvpress's press of a row, told to keep as many tokens; None for the full cache."""
    if row["policy"] == "full":
        return None
    press = PRESSES[row["scorer"]]
    given = {key: int(constants[constant]) for key, constant in press.constants.items()}
    return getattr(kvpress, press.class_name)(compression_ratio=compression_ratio(kept, n), **given)


def asked_of(example) -> tuple[str, dict[str, str]]:
    """The example as kvpress's pipeline takes it: the context, and what is asked about it."""
    joined = example.joiner.join(part for part in (example.instruction, example.context) if part)
    return joined + example.joiner, {"question": example.question, "answer_prefix": example.answer_prefix}


def kvpress_prompt(pipeline, example) -> Prompt:
    """kvpress's own token ids, for both sides (it tokenises context and question apart, we the prompt as a whole)."""
    context, asked = asked_of(example)
    found = pipeline.preprocess(
        context, [asked["question"]], asked["answer_prefix"], max_context_length=10**9
    )
    n = found["context_ids"].shape[1]
    ids = tuple(found["context_ids"][0].tolist() + found["questions_ids"][0][0].tolist())
    return Prompt(ids=ids, n_context=n, text="", sha256=sha256_json(ids))


def clocks() -> tuple[float, float]:
    """Wall time and this process's processor time, seconds."""
    return time.perf_counter(), time.process_time()


def through_kvpress(pipeline, spec, example, prompt) -> tuple[list[float], list[str]]:
    """Seconds (both clocks) and answers of one pipeline call per cell; the kept tokens are checked outside the clock."""
    n, constants = prompt.n_context, spec["constants"]
    seconds, answers = [0.0, 0.0], []
    for row in spec["rows"]:
        kept = capacity_of(row["budget"], n, constants)
        press, cache = press_of(row, kept, n, constants), DynamicCache()
        context, asked = asked_of(example)
        started = clocks()
        found = pipeline(context, **asked, press=press, cache=cache, max_new_tokens=spec["max_new_tokens"])
        seconds = [
            total + stop - start for total, start, stop in zip(seconds, started, clocks(), strict=True)
        ]
        answers.append(found["answer"])
        counts = {layer.keys.shape[2] for layer in cache.layers}
        assert counts == {kept}, f"{row}: kvpress kept {counts}, not {kept}"
    return seconds, answers


def through_ours(model, spec, prompt, backend) -> tuple[list[float], list[str]]:
    """Seconds (both clocks) and answers of one shard's example."""
    started = clocks()
    found = runner.run_example(spec, model, prompt, backend=backend)
    seconds = [stop - start for start, stop in zip(started, clocks(), strict=True)]
    for row in found.rows:
        assert bool((row.selection.keep.sum(-1) == row.capacity).all()), row.spec
        assert row.capacity == capacity_of(row.spec["budget"], prompt.n_context, spec["constants"])
    by_cell = {(row.spec["scorer"], row.spec["budget"]): row.free for row in found.rows}
    trails = [by_cell.get((row["scorer"], row["budget"]), found.full) for row in spec["rows"]]
    assert all(len(trail.tokens) == spec["max_new_tokens"] for trail in trails)
    return seconds, [model.tokenizer.decode(trail.tokens, skip_special_tokens=True) for trail in trails]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--examples", type=int, default=3)
    parser.add_argument("--task", default="niah", choices=sorted(tasks.names()))
    parser.add_argument("--length", type=int, default=768)
    parser.add_argument("--new", type=int, default=12, help="new tokens of every cell")
    parser.add_argument("--bare", action="store_true", help="our side without the shard's measurements")
    options = parser.parse_args()
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    library()  # refuses an unsupported release
    spec, cache = grid(options), Path(".kvcert")
    model = models.load(spec["model"], cache)
    plain = models.load(spec["model"], cache, attn="sdpa").model
    plain.generation_config.eos_token_id = -1
    model = dataclasses.replace(model, stop_ids=frozenset())
    if options.bare:
        runner.Panel = Deaf
    pipeline = kvpress.KVPressTextGenerationPipeline(model=plain, tokenizer=model.tokenizer, device="cpu")
    backend = resolve_backend("auto", "cpu")
    cells = len(spec["rows"])
    print(
        f"{processor()}, 1 thread, torch {torch.__version__}, kvpress {json.loads(versions({}, 'kvpress'))['kvpress']}"
    )
    print(
        f"{model.name}, {options.task}, {options.length} tokens, {options.new} new, {cells} cells "
        f"({len(SCORERS)} presses x {len(BUDGETS)} budgets, and the full cache), {options.examples} examples"
    )
    print(f"kvpress: one pipeline call a cell. Ours: one shard, backend {backend}, ", end="")
    print("bare" if options.bare else "attention errors measured")
    times: dict[str, list[list[float]]] = {"ours": [], "kvpress": []}
    equal = total = 0
    with torch.inference_mode():
        for number, (example, _) in enumerate(load_examples(spec, model, cache)):
            prompt, answers = kvpress_prompt(pipeline, example), {}
            for side in ("ours", "kvpress") if number % 2 == 0 else ("kvpress", "ours"):
                if side == "ours":
                    seconds, answers[side] = through_ours(model, spec, prompt, backend)
                else:
                    seconds, answers[side] = through_kvpress(pipeline, spec, example, prompt)
                times[side].append(seconds)
            equal += sum(a == b for a, b in zip(answers["ours"], answers["kvpress"], strict=True))
            total += cells
            wall, busy = ({side: values[-1][clock] for side, values in times.items()} for clock in (0, 1))
            print(f"  wall: kvpress {wall['kvpress']:.1f} s, ours {wall['ours']:.1f} s; ", end="")
            print(f"processor: kvpress {busy['kvpress']:.1f} s, ours {busy['ours']:.1f} s")
    print(f"same kept tokens per KV head in all {total} cells; same answer in {equal} of {total}")
    for clock, name in enumerate(("wall", "processor")):
        median = {side: statistics.median(value[clock] for value in values) for side, values in times.items()}
        ratio = median["kvpress"] / median["ours"]
        print(
            f"median {name} seconds an example: kvpress {median['kvpress']:.2f}, ours {median['ours']:.2f} "
            f"({ratio:.2f} x)"
        )
    print(f"ratio kvpress_over_ours {ratio:.2f}")


if __name__ == "__main__":
    main()
