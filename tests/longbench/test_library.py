"""What comes from lm-eval: names, templates, limits, stop rules and scores, for all 34 datasets."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.longbench.made import row, write

from kvcert import config, tasks
from kvcert.errors import KvcertError
from kvcert.runner import answer
from kvcert.tasks.longbench import library
from kvcert.tasks.longbench.catalogue import CHINESE, DATASETS, ENGLISH, EXTENDED, dataset

ROOT = Path(__file__).resolve().parents[2]
#: Predictions that earn something, nothing, and part of it.
PREDICTIONS = (
    "the mayor",
    " The mayor speaks.\n\nAnd a boat waits.",
    "市长在等。段落1，段落2",
    "Paragraph 1 and Paragraph 3",
    "1, 2",
    "\n# a comment\n    return 6\nreturn 7",
    "another mayor",
    "",
)


def lm_eval_config(name: str) -> dict[str, Any]:
    from lm_eval.tasks._yaml_loader import load_yaml

    return load_yaml(library.folder() / f"{name}.yaml")


def make(name: str, texts: Path, index: int = 0) -> Any:
    entry = {"length": 4000, "params": {}}
    return next(tasks.get(f"longbench_{name}").examples(entry, 1, [index], len, texts))


def test_all_datasets_are_tasks() -> None:
    assert (len(ENGLISH), len(CHINESE), len(EXTENDED)) == (16, 5, 13)
    assert len(set(DATASETS)) == 34
    assert {f"longbench_{name}" for name in DATASETS} <= set(tasks.names())
    there = {path.stem for path in library.folder().glob("*.yaml") if not path.stem.startswith("_")}
    assert set(DATASETS) == there


@pytest.mark.parametrize("name", DATASETS)
def test_prompts_limits_stops_and_scores_are_the_librarys(tmp_path: Path, name: str) -> None:
    from lm_eval.utils import apply_template

    item = row(name, 1)
    write(tmp_path / "longbench", name, [row(name), item])
    example, theirs = make(name, tmp_path, 1), lm_eval_config(name)
    doc = {**item, "question": item["input"]}
    assert example.instruction + example.context + example.question == apply_template(
        theirs["doc_to_text"], doc
    )
    assert (example.context, example.joiner, example.answer_prefix) == (item["context"], "", "")
    assert example.question.strip()
    how = theirs["generation_kwargs"]
    assert list(example.stop) == how["until"]
    assert library.template(name).max_new_tokens == how["max_gen_toks"]
    assert ("{{question}}" in theirs["doc_to_text"]) == dataset(name).has_input
    plain = {"longbench_fewshot_tasks", "longbench_code_tasks"}
    assert example.chat == (not {tag.removesuffix("_e") for tag in theirs["tag"]} & plain)
    ours = [tasks.get(f"longbench_{name}").score(text, example) for text in PREDICTIONS]
    assert ours == [theirs["process_results"](doc, [text])["score"] for text in PREDICTIONS]
    assert max(ours) > 0 or dataset(name).family == "passage_retrieval_zh"
    assert all(0 <= score <= 1 for score in ours)


def test_answers_are_cut_at_stops_as_lm_eval_cuts_them() -> None:
    from types import SimpleNamespace

    from lm_eval.models.utils import postprocess_generated_text

    for text in ("one\ntwo", "\none", "one", "a\n\nb\n", ""):
        tokenizer = SimpleNamespace(decode=lambda ids, skip_special_tokens, text=text: text)
        model: Any = SimpleNamespace(tokenizer=tokenizer, stop_ids=frozenset())
        assert answer.text(model, [1], ("\n",)) == postprocess_generated_text(text, ["\n"], None)


def test_names_are_known_without_torch_and_without_lm_eval() -> None:
    code = (
        "import sys\n"
        "from importlib.machinery import PathFinder\n"
        "class Hiding:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        hidden = name.partition('.')[0] in ('lm_eval', 'torch', 'transformers')\n"
        "        return None if hidden else PathFinder.find_spec(name, path, target)\n"
        "sys.meta_path = [finder for finder in sys.meta_path if finder is not PathFinder] + [Hiding()]\n"
        "from kvcert import config\n"
        "config.load('config/config.yaml', 'config/longbench-local.yaml')\n"
        "from kvcert.tasks.longbench import library\n"
        "assert not library.installed()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_lm_eval_is_asked_for_when_it_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "longbench", "qasper", [row("qasper")])
    library.template.cache_clear()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(KvcertError, match=r"not installed; pip install 'kvcert\[longbench\]'"):
        make("qasper", tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "doc_to_text: no place for it",
        "doc_to_text: '{{question}} {{context}}'",
        "doc_to_text: '{{context}}{% if x %}'",
        "doc_to_text: '{{context}}{{other}}'",
        "a: [",
        "doc_to_text: '{{context}}'\ngeneration_kwargs: {max_gen_toks: 5, until: [], do_sample: true}",
        "doc_to_text: '{{context}}'\ngeneration_kwargs: {max_gen_toks: 5, until: []}\nprocess_results: !function a.b",
    ],
)  # fmt: skip
def test_another_kind_of_template_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    defaults = "\ngeneration_kwargs: {max_gen_toks: 5, until: []}\nprocess_results: !function metrics.score"
    (tmp_path / "qasper.yaml").write_text(text if "generation_kwargs" in text else text + defaults)
    library.template.cache_clear()
    monkeypatch.setattr(library, "folder", lambda: tmp_path)
    with pytest.raises(KvcertError, match=r"LongBench qasper: .*qasper\.yaml is not as expected"):
        library.template("qasper")
    library.template.cache_clear()


def study(**task: Any) -> dict[str, Any]:
    base = config.load(ROOT / "config/config.yaml", ROOT / "config/longbench-local.yaml")
    base["study"]["tasks"][0] |= task
    return base


def check(made: dict[str, Any]) -> None:
    from kvcert.config_checks import check_known

    check_known(config.resolve(made))


def test_an_answer_may_be_shorter_than_the_official_one_but_not_longer() -> None:
    check(study(max_new_tokens=512))
    with pytest.raises(
        KvcertError, match=r"tasks\[0\]\.max_new_tokens: .*513, the benchmark allows 512"
    ) as caught:
        check(study(max_new_tokens=513))
    assert "\n" not in str(caught.value)
    made = study(name="longbench_hotpotqa", max_new_tokens=5)
    del made["study"]["tasks"][0]["max_new_tokens"]
    made["study"]["max_new_tokens"] = 33  # the study's own number holds where the task gives none
    with pytest.raises(KvcertError, match=r"longbench_hotpotqa: .* allows 32;"):
        check(made)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "longbench_hotpot"}, "nothing is called 'longbench_hotpot'"),
        ({"name": "longbench_musique_e"}, "nothing is called 'longbench_musique_e'"),
        ({"params": {"seed": 1}}, "params.seed: unknown"),
    ],
)
def test_unknown_names(change: dict[str, Any], message: str) -> None:
    with pytest.raises(KvcertError, match=message):
        check(study(**change))


def test_asking_for_more_than_there_is(tmp_path: Path) -> None:
    write(tmp_path / "longbench", "qasper", [row("qasper"), row("qasper", 1)])
    with pytest.raises(KvcertError, match=r"example 2 is asked for, but .*qasper\.jsonl has 2 rows"):
        make("qasper", tmp_path, 2)


def test_the_folder_is_one_key_also_at_the_top_level() -> None:
    made = config.read_yaml(ROOT / "config/longbench-local.yaml") | {"longbench": "/data/longbench"}
    base = config.read_yaml(ROOT / "config/config.yaml")
    assert config.resolve(config.merge(base, made))["run"]["longbench"] == "/data/longbench"
    with pytest.raises(KvcertError, match=r"run\.longbench: ~/data is not expanded"):
        config.resolve(base | {"longbench": "~/data"})
    assert config.resolve(base)["run"]["longbench"] == ""
