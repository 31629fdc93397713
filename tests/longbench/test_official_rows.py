"""Reading official files: what is wrong is told in one line that names file and line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.longbench.made import row, write

from kvcert.errors import KvcertError
from kvcert.tasks.longbench.catalogue import DATASETS, dataset
from kvcert.tasks.longbench.rows import load, read


def without(item: dict[str, Any], field: str) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key != field}


@pytest.mark.parametrize("name", DATASETS)
def test_a_good_file_of_every_dataset(tmp_path: Path, name: str) -> None:
    write(tmp_path, name, [row(name, index) for index in range(3)])
    rows = load(tmp_path, name).rows
    assert [found.line for found in rows] == [1, 2, 3]
    assert [found.id for found in rows] == [f"{name}-{index}" for index in range(3)]
    assert rows[1].text == row(name, 1)["context"]
    assert bool(rows[0].classes) == dataset(name).has_classes


def test_a_family_name_in_a_file_of_longbench_e(tmp_path: Path) -> None:
    write(tmp_path, "hotpotqa_e", [row("hotpotqa_e", dataset="hotpotqa")])
    assert len(load(tmp_path, "hotpotqa_e").rows) == 1


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    write(tmp_path, "qasper", [row("qasper")])
    assert len(load(tmp_path, "qasper").rows) == 1
    write(tmp_path, "qasper", [row("qasper"), row("qasper", 1)])
    assert len(load(tmp_path, "qasper").rows) == 2


@pytest.mark.parametrize(
    ("name", "bad", "message"),
    [
        *(
            ("qasper", without(row("qasper", 1), field), f"field {field} is missing")
            for field in row("qasper")
        ),
        ("qasper", row("qasper", 1, answers=[]), "answers are empty"),
        ("qasper", row("qasper", 1, answers=["", "  "]), "answers are empty"),
        ("qasper", row("qasper", 1, answers="Oslo"), "field answers is of type str, list is needed"),
        ("qasper", row("qasper", 1, answers=[3]), "field answers holds something else than text"),
        ("qasper", row("qasper", 1, length="60"), "field length is of type str, int is needed"),
        ("qasper", row("qasper", 1, length=True), "field length is of type bool, int is needed"),
        ("qasper", row("qasper", 1, context=" "), "field context is empty"),
        ("qasper", row("qasper", 1, input=""), "field input is empty"),
        ("qasper", row("qasper", 1, language="zh"), "language is 'zh', qasper is in 'en'"),
        ("dureader", row("dureader", 1, language="en"), "language is 'en', dureader is in 'zh'"),
        ("lcc", row("lcc", 1, language="zh"), "language is 'zh', lcc is in a programming language"),
        ("qasper", row("qasper", 1, dataset="hotpotqa"), "dataset is 'hotpotqa', the file must hold qasper"),
        ("qasper", row("qasper", 1, dataset="qasper_e"), "dataset is 'qasper_e', the file must hold qasper"),
        ("trec", row("trec", 1, all_classes=None), "all_classes is empty; trec is scored by its classes"),
        ("qasper", row("qasper", 0), "_id 'qasper-0' is that of line 1"),
        ("qasper", ["no", "object"], "is a list, not an object"),
    ],
)
def test_a_bad_row(tmp_path: Path, name: str, bad: Any, message: str) -> None:
    path = write(tmp_path, name, [row(name), bad, row(name, 2)])
    with pytest.raises(
        KvcertError, match=f"^{re.escape(f'{path}, line 2: ')}.*{re.escape(message)}"
    ) as caught:
        read(path, dataset(name))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no rows"),
        (b"not json\n", "line 1: is not JSON"),
        (b"\xff\xfe{}\n", "line 1: is not UTF-8 text"),
        (json.dumps(row("qasper"), indent=1).encode(), "line 1: is not JSON"),
        (json.dumps(row("qasper")).encode() + b"\n\n" + json.dumps(row("qasper", 1)).encode(), "line 2: is not JSON"),
        (json.dumps(row("qasper")).encode()[:-40], "line 1: is not JSON"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_jsonl(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "qasper.jsonl"
    path.write_bytes(content)
    with pytest.raises(KvcertError, match=message) as caught:
        read(path, dataset("qasper"))
    assert str(path) in str(caught.value)


def test_a_missing_file_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(KvcertError, match=r"qasper\.jsonl is missing; run `kvcert prepare` first"):
        load(tmp_path, "qasper")
