"""The default and the smoke grid's tasks on the real texts with the real tokenizer (no model)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kvcert import tasks
from kvcert.prompts import prompt_counter, render
from kvcert.tasks.base import FILL

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("real_texts")]


@pytest.mark.parametrize("grid", ["config", "smoke"])
def test_every_configured_task_fills_its_length(grid: str, root: Path, tokenizer: Any, texts: Path) -> None:
    study = yaml.safe_load((root / "config" / f"{grid}.yaml").read_text())["study"]
    count = prompt_counter(tokenizer)
    for spec in study["tasks"]:
        task, seen = tasks.get(spec["name"]), set()
        for example in task.examples(spec, study.get("seed", 2607), range(3), count, texts):
            prompt = render(tokenizer, example, task)
            assert FILL * spec["length"] - 2 <= len(prompt.ids) <= spec["length"]
            assert len(prompt.ids) - prompt.n_context < 0.5 * spec["length"]
            assert all(len(tokenizer.tokenize(" " + answer)) <= 12 for answer in example.answers[:1])
            seen.add(prompt.sha256)
        assert len(seen) == 3


@pytest.mark.parametrize("name", ["squad_long", "hotpot_long"])
def test_the_cue_precedes_the_answer_in_the_text(name: str, tokenizer: Any, texts: Path) -> None:
    spec = {"name": name, "length": 768, "params": {"cue_words": 3}}
    for example in tasks.get(name).examples(spec, 11, range(6), prompt_counter(tokenizer), texts):
        place = example.context.find(example.answer_prefix)
        assert place >= 0
        following = example.context[place + len(example.answer_prefix) :].lstrip()
        assert following.startswith(example.answers[0])


def test_the_pools_are_large_enough_for_disjoint_examples(texts: Path) -> None:
    from kvcert.tasks import hotpot_long, squad_long

    assert len(squad_long.pool(texts, 3, 3)) > 1000
    assert len(hotpot_long.pool(texts, 3, 3)) > 4000
