"""The datasets of LongBench by name, and what is prescribed for each of them. No library is needed to know the names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: Task names are this and the dataset's own name.
PREFIX = "longbench_"

ENGLISH = (
    "narrativeqa",
    "qasper",
    "multifieldqa_en",
    "hotpotqa",
    "2wikimqa",
    "musique",
    "gov_report",
    "qmsum",
    "multi_news",
    "trec",
    "triviaqa",
    "samsum",
    "passage_count",
    "passage_retrieval_en",
    "lcc",
    "repobench-p",
)
CHINESE = ("multifieldqa_zh", "dureader", "vcsum", "lsht", "passage_retrieval_zh")
#: Datasets that LongBench-E draws anew, evenly over lengths; `_e` is added to their names.
EXTENDED = (
    "qasper",
    "multifieldqa_en",
    "hotpotqa",
    "2wikimqa",
    "gov_report",
    "multi_news",
    "trec",
    "triviaqa",
    "samsum",
    "passage_count",
    "passage_retrieval_en",
    "lcc",
    "repobench-p",
)
DATASETS = (*ENGLISH, *CHINESE, *(f"{name}_e" for name in EXTENDED))

#: Few-shot and code tasks are given as plain text, to chat models too (LongBench's pred.py).
PLAIN = frozenset({"trec", "triviaqa", "samsum", "lsht", "lcc", "repobench-p"})
#: Code: `language` names a programming language.
CODE = frozenset({"lcc", "repobench-p"})
#: Classification: `all_classes` lists the classes.
CLASSES = frozenset({"trec", "lsht"})
#: The whole task lies in the context; `input` is empty.
NO_INPUT = frozenset({"gov_report", "multi_news", "vcsum", "passage_count", "lcc"})


@dataclass(frozen=True)
class Dataset:
    """One file of LongBench: its name, and its family's name (the same without `_e`)."""

    name: str
    family: str

    @property
    def language(self) -> str:
        """Language of its rows: `en`, `zh` or `code`."""
        return "code" if self.family in CODE else "zh" if self.family in CHINESE else "en"

    @property
    def chat(self) -> bool:
        """Whether the prompt goes through a chat model's template."""
        return self.family not in PLAIN

    @property
    def has_input(self) -> bool:
        """Whether a row has a question of its own beside the context."""
        return self.family not in NO_INPUT

    @property
    def has_classes(self) -> bool:
        """Whether a row lists the classes it is scored by."""
        return self.family in CLASSES


def dataset(name: str) -> Dataset:
    """The dataset called `name`, one of `DATASETS`."""
    return Dataset(name, name.removesuffix("_e"))


def needed(study: dict[str, Any]) -> list[str]:
    """Names of the datasets that a study's tasks read, sorted, each once."""
    asked = {task["name"] for task in study.get("tasks", [])}
    return sorted(name for name in DATASETS if PREFIX + name in asked)
