"""The prepared texts, read once per process."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from kvcert.errors import KvcertError


def read(folder: Path, name: str) -> Any:
    """Parsed JSON of a prepared text, or a KvcertError that says how to get it."""
    path = folder / f"{name}.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise KvcertError(f"text {name}: {path} is missing; run `kvcert prepare` first") from None
    except ValueError:
        raise KvcertError(
            f"text {name}: {path} is damaged; delete it and run `kvcert prepare` again"
        ) from None


@lru_cache(maxsize=2)
def essays(folder: Path) -> tuple[str, ...]:
    """All sentences of the essays, in order, whitespace normalised."""
    text = " ".join(read(folder, "essays")["text"].split())
    text = re.sub(r"<[^>]{1,40}>|\[\d+\]", "", text)
    return tuple(
        sentence for sentence in re.split(r"(?<=[.!?])\s+", text) if 3 <= len(sentence.split()) <= 60
    )


@lru_cache(maxsize=2)
def squad(folder: Path) -> tuple[dict[str, Any], ...]:
    """SQuAD paragraphs with answerable questions: `title`, `text`, `asked` as (question, answers, first answer's start)."""
    found = []
    for article in read(folder, "squad")["data"]:
        for paragraph in article["paragraphs"]:
            asked = tuple(
                (
                    qa["question"].strip(),
                    tuple(dict.fromkeys(answer["text"] for answer in qa["answers"])),
                    qa["answers"][0]["answer_start"],
                )
                for qa in paragraph["qas"]
                if not qa["is_impossible"] and qa["answers"]
            )
            if asked:
                found.append({"title": article["title"], "text": paragraph["context"], "asked": asked})
    return tuple(found)


@lru_cache(maxsize=2)
def hotpot(folder: Path) -> tuple[dict[str, Any], ...]:
    """HotpotQA entries: question, answer, `gold` and `other` paragraphs as (title, text)."""
    found = []
    for entry in read(folder, "hotpotqa"):
        wanted = {title for title, _ in entry["supporting_facts"]}
        paragraphs = [(title, " ".join("".join(sentences).split())) for title, sentences in entry["context"]]
        found.append(
            {
                "question": entry["question"].strip(),
                "answer": entry["answer"],
                "gold": tuple(item for item in paragraphs if item[0] in wanted),
                "other": tuple(item for item in paragraphs if item[0] not in wanted),
            }
        )
    return tuple(found)
