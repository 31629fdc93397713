"""Shards of LongBench tasks on a tiny random model: stored answers scored again by lm-eval, and lm-eval's own run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.longbench.harness import evaluate
from tests.longbench.made import row, write
from tests.tiny_grid import save_tiny_model, tiny_config

from kvcert import models
from kvcert.errors import KvcertError
from kvcert.grid import shards
from kvcert.runner.shard import load_examples, measure, run_shard
from kvcert.tasks.longbench import fetch, library

pytestmark = pytest.mark.slow
NEW = 10


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory, tokenizer: Any) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("tiny"), tokenizer)


def grid(tiny: Path, place: Path, files: dict[str, list[dict[str, Any]]], **study: Any) -> dict[str, Any]:
    """A resolved configuration over these files, with everything prepared in `place`."""
    for name, items in files.items():
        write(place / "given", name, items)
    entries = [
        {
            "name": f"longbench_{name}",
            "length": 700,
            "examples": len(items),
            "fail_below": 0.5,
            "max_new_tokens": NEW,
            "params": {},
        }
        for name, items in files.items()
    ]
    made = tiny_config(tiny, place / "results", place / "cache", **({"tasks": entries} | study))
    made["run"] |= {"longbench": str(place / "given"), "trace_examples": 0}
    fetch.prepare_longbench(made, place / "cache", lambda line: None)
    return made


def say_nothing(line: str) -> None:
    """No progress."""


def metric(name: str) -> Any:
    """lm-eval's own `process_results` of a dataset, loaded by lm-eval."""
    from lm_eval.tasks._yaml_loader import load_yaml

    return load_yaml(library.folder() / f"{name}.yaml")["process_results"]


def test_stored_answers_scored_again_from_the_log(tiny: Path, tmp_path: Path) -> None:
    rows = {name: [row(name, i) for i in range(2)] for name in ("multi_news", "trec", "lcc")}
    full = [{"policy": "full"}]
    # A random model says nothing that stands in a text: its own words become the answers, so that scores differ from 0.
    for spec in shards(grid(tiny, tmp_path / "first", rows, rows=full, settings=["aware"])):
        run = {**tiny_config(tiny, tmp_path, tmp_path / "first" / "cache")["run"], "trace_examples": 0}
        name = spec["task"]["name"].removeprefix("longbench_")
        for said in measure(spec, run, say_nothing)[0]["runs"].to_pylist():
            words = said["answer"].split()
            item = rows[name][said["example"]]
            item["answers"] = ["nothing of it", " ".join(words[: len(words) // 2 + 1]) or "nothing"]
            if name == "trec":
                item["all_classes"] = [*item["answers"], words[-1] if words else "else"]
    kept = [*full, {"policy": "topk", "budgets": [0.5]}, {"policy": "poisson", "budgets": [0.5]}]
    made = grid(tiny, tmp_path / "second", rows, rows=kept)
    scores = []
    for spec in shards(made):
        assert run_shard(spec, made["run"], progress=False)
        name = spec["task"]["name"].removeprefix("longbench_")
        stored = pq.read_table(Path(made["run"]["results"], "runs", f"{spec['shard']}.parquet")).to_pylist()
        for run in (run for run in stored if run["regime"] == "free"):
            doc = json.loads(
                (tmp_path / "second/given" / f"{name}.jsonl").read_text().splitlines()[run["example"]]
            )
            again = metric(name)(doc, [run["answer"]])["score"]
            assert abs(run["score"] - again) <= 1e-9
            assert run["answers"] == doc["answers"]
            scores.append(run["score"])
        origin = json.loads(stored[0]["versions"])
        manifest = json.loads((tmp_path / "second/cache/texts/longbench" / f"{name}.json").read_text())
        assert origin[f"{name}.jsonl"] == f"sha256:{manifest['sha256']}"
        assert origin["lm_eval"]
    assert len(scores) == 3 * 2 * 2 * 3
    assert len({round(score, 6) for score in scores}) > 4, "too few different scores to mean anything"


#: Chat and plain, stop at a line's end, English, Chinese and code, an input that ends with a space.
PARITY = {
    "multi_news": [row("multi_news", 0), row("multi_news", 1)],
    "passage_retrieval_zh": [row("passage_retrieval_zh", 0), row("passage_retrieval_zh", 4)],
    "trec": [row("trec", i, input="Type: ", all_classes=["e", "a", "o"], answers=["e"]) for i in range(2)],
    "repobench-p": [row("repobench-p", 0), row("repobench-p", 3)],
}


def test_the_full_cache_is_lm_evals_own_run(tiny: Path, tmp_path: Path) -> None:
    made = grid(tiny, tmp_path, PARITY, rows=[{"policy": "full"}], settings=["aware"])
    scores = []
    for spec in shards(made):
        name = spec["task"]["name"].removeprefix("longbench_")
        model = models.load(spec["model"], tmp_path / "cache", attn="sdpa")
        ours = load_examples(spec, model, tmp_path / "cache")
        logged = measure(spec, made["run"], say_nothing)[0]["runs"].to_pylist()
        theirs = evaluate(
            model.model, model.tokenizer, name, PARITY[name], tmp_path, new=NEW, chat=ours[0][0].chat
        )
        for (_, prompt), run, other in zip(ours, logged, theirs, strict=True):
            assert prompt.text == other["prompt"]
            assert list(prompt.ids) == other["ids"]
            assert run["answer"] == other["answer"]
            assert abs(run["score"] - other["score"]) <= 1e-9
            scores.append(run["score"])
    assert len(scores) == 8
    assert len(set(scores)) > 2


def test_a_row_over_the_window_is_refused_by_file_and_line(tiny: Path, tmp_path: Path) -> None:
    rows = {"multi_news": [row("multi_news"), row("multi_news", 1, words=3000)]}
    made = grid(tiny, tmp_path, rows, rows=[{"policy": "full"}])
    made["study"]["tasks"][0]["length"] = 1020
    spec = shards(made)[0]
    model = models.load(spec["model"], tmp_path / "cache", attn="sdpa")
    with pytest.raises(
        KvcertError, match=r"example 1 \(multi_news\.jsonl, line 2\): .*window of tiny \(1024\)"
    ):
        load_examples(spec, model, tmp_path / "cache")


def test_a_row_too_short_for_a_budget_is_refused_by_file_and_line(tiny: Path, tmp_path: Path) -> None:
    rows = {"trec": [row("trec"), row("trec", 1, context="One boat.")]}
    spec = shards(grid(tiny, tmp_path, rows))[0]
    model = models.load(spec["model"], tmp_path / "cache", attn="sdpa")
    with pytest.raises(KvcertError, match=r"example 1 \(trec\.jsonl, line 2\): budget 0\.25 keeps"):
        load_examples(spec, model, tmp_path / "cache")
