"""Made-up rows in the official format, for every dataset. Nothing in them is taken from LongBench."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kvcert.tasks.longbench.catalogue import dataset

WORDS = "the harbour of the old town was closed in winter while seven boats waited for the mayor to speak"
ZH = "港口在冬天关闭，七条船等待市长讲话。旧城的桥很长，居民每天步行。"
CODE = "def area(width, height):\n    # both in metres\n    return width * height\n\n"


def row(name: str, index: int = 0, words: int = 60, **changes: Any) -> dict[str, Any]:
    """One official row of dataset `name`; different for every index."""
    data = dataset(name)
    if data.language == "zh":
        text, asked, answer = f"段落{index + 1}：" + ZH * (words // 20), f"第{index + 1}条船在等谁？", "市长"
    elif data.language == "code":
        text, asked, answer = CODE * (words // 15) + f"n{index} = ", "\nx = area(2, 3)\n", "    return 6"
    else:
        known = WORDS.split()
        picked = [known[(i * (index + 3)) % len(known)] for i in range(words)]
        text, asked, answer = (
            f"Passage {index + 1}:\n{' '.join(picked)}.",
            f"Who speaks, {index}?",
            "the mayor",
        )
    answers = {
        "passage_retrieval_en": [f"Paragraph {index + 1}"],
        "passage_retrieval_zh": [f"段落{index + 1}"],
        "passage_count": [str(index + 1)],
    }.get(data.family, [answer])
    classes = [answer, "a boat", "another mayor"] if data.has_classes else None
    made = {
        "input": asked if data.has_input else "",
        "context": text,
        "answers": answers,
        "length": words,
        "dataset": name,
        "language": "python" if data.language == "code" else data.language,
        "all_classes": classes,
        "_id": f"{name}-{index}",
    }
    return made | changes


def write(folder: Path, name: str, rows: list[dict[str, Any]]) -> Path:
    """`<folder>/<name>.jsonl` with these rows."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.jsonl"
    text = "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in rows)
    path.write_text(text, encoding="utf-8")
    return path
