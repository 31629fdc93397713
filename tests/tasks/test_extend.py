"""What docs/extend.md prints works: a new task, scorer or policy is one file."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from kvcert import tasks
from kvcert.errors import KvcertError


def documented(root: Path, heading: str) -> dict[str, Any]:
    """What the first Python block under a heading of docs/extend.md defines."""
    text = (root / "docs" / "extend.md").read_text()
    code = re.search(rf"## {heading}\n.*?```python\n(.*?)```", text, re.DOTALL)
    assert code is not None
    names: dict[str, Any] = {"__name__": "extend"}
    exec(compile(code.group(1), "extend.md", "exec"), names)  # noqa: S102 our own document
    return names


def test_the_documented_task_runs(
    root: Path, count_words: Callable[[str], int], made_texts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks.names()
    monkeypatch.setattr(tasks, "_TASKS", dict(tasks._TASKS))
    documented(root, "A task")
    task = tasks.get("colours")
    spec = {"length": 300, "params": {"animals": 3}}
    (example,) = task.examples(spec, 1, [0], count_words, made_texts)
    assert example.context.count(" is ") >= 3
    assert task.score(example.answers[0], example) == 1.0


def test_the_documented_scorer_and_policy_run(root: Path) -> None:
    scorer = documented(root, "A scorer")["Position"]({})
    z = scorer.score(0, torch.rand(4, 5, 8), torch.rand(2, 9, 8), 6, 1.0)
    assert z.shape == (2, 6)
    assert (z.diff() > 0).all()
    policy = documented(root, "A policy")["Recent"]()
    chosen = policy.select(z[None], 2, {}, torch.zeros(1, 2, 6, dtype=torch.int64))
    assert chosen.keep[0, 0].tolist() == [False] * 4 + [True] * 2


def test_a_name_is_taken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks.names()
    monkeypatch.setattr(tasks, "_TASKS", dict(tasks._TASKS))
    other = type("Other", (tasks.Task,), {"name": "niah", "make": lambda self, *args: None})
    with pytest.raises(KvcertError, match="task niah: registered twice"):
        tasks.register(other)
