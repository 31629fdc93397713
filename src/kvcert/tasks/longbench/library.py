"""Prompts, limits, stop rules and metrics of LongBench, from lm-eval's own files: nothing of them is copied here.

The templates are read as data (no torch, no import of lm-eval); the metrics are lm-eval's functions.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kvcert.errors import KvcertError
from kvcert.installed import has

INSTALL = "pip install 'kvcert[longbench]'"
#: The library, and what its metrics are computed with (fuzzywuzzy takes Levenshtein where it is installed).
PACKAGES = ("lm_eval", "rouge", "jieba", "fuzzywuzzy", "Levenshtein")
_CONTEXT, _INPUT = "{{context}}", "{{question}}"


@dataclass(frozen=True)
class Template:
    """How lm-eval asks and scores one dataset.

    The prompt is `before`, the context, and `after` with the row's input in it. `max_new_tokens` is the official length
    of an answer, which also ends at the first text of `stop`. `metric` is the name of a function of lm-eval's module.
    """

    before: str
    after: str
    max_new_tokens: int
    stop: tuple[str, ...]
    metric: str

    def question(self, given: str) -> str:
        """Everything after the context, with the row's `input` filled in (lm-eval's templates call it `question`)."""
        return self.after.replace(_INPUT, given)


class _Loader(yaml.SafeLoader):
    """Safe YAML; `!function module.name` is read as the text it is, nothing is imported."""


_Loader.add_constructor("!function", lambda loader, node: str(node.value))


def installed() -> bool:
    """Whether lm-eval can be found; it is not imported."""
    return has("lm_eval")


def folder() -> Path:
    """lm-eval's folder of LongBench tasks."""
    spec = importlib.util.find_spec("lm_eval")
    if spec is None or not spec.submodule_search_locations:
        raise KvcertError(f"LongBench: its prompts and metrics come from lm-eval, not installed; {INSTALL}")
    found = Path(next(iter(spec.submodule_search_locations))) / "tasks" / "longbench"
    if not found.is_dir():
        raise KvcertError(f"LongBench: lm-eval in {found.parents[1]} has no LongBench tasks; {INSTALL}")
    return found


@cache
def template(name: str) -> Template:
    """The template of dataset `name`.

    Raises
    ------
    KvcertError
        lm-eval is missing, or writes its templates in another way than the one that is understood here.
    """
    path = folder() / f"{name}.yaml"
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506 - a SafeLoader
        text, how = content["doc_to_text"], content["generation_kwargs"]
        before, _, after = text.partition(_CONTEXT)
        plain = before + after.replace(_INPUT, "", 1)
        if _CONTEXT not in text or _INPUT in before or "{{" in plain or "{%" in plain:
            raise ValueError("the prompt is not one context followed by at most one question")
        if how.get("do_sample"):
            raise ValueError("it samples; answers here are greedy")
        module, _, metric = content["process_results"].rpartition(".")
        if module != "metrics":
            raise ValueError(f"its scores come from {module or 'nowhere'}")
        return Template(before, after, int(how["max_gen_toks"]), tuple(how["until"]), metric)
    except (OSError, yaml.YAMLError, KeyError, TypeError, AttributeError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise KvcertError(f"LongBench {name}: {path} is not as expected ({reason}); {INSTALL}") from None


def score(metric: str, answers: tuple[str, ...], classes: tuple[str, ...], prediction: str) -> float:
    """lm-eval's score of a prediction, in [0, 1]: the best over the answers, stripped as its function does."""
    try:
        metrics: Any = importlib.import_module("lm_eval.tasks.longbench.metrics")
    except ImportError as error:
        reason = str(error).splitlines()[0]
        raise KvcertError(f"LongBench: lm-eval's metrics cannot be imported ({reason}); {INSTALL}") from None
    found = getattr(metrics, metric)({"answers": list(answers), "all_classes": list(classes)}, [prediction])
    return float(found["score"])
