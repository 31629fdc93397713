"""A LongBench dataset as a task: example i is row i of its file, in lm-eval's words, scored by lm-eval's metric."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from kvcert.errors import KvcertError
from kvcert.installed import versions
from kvcert.tasks.base import Task
from kvcert.tasks.example import Count, Draw, Example, Room
from kvcert.tasks.longbench import library, rows
from kvcert.tasks.longbench.catalogue import Dataset
from kvcert.tasks.stream import Stream

#: Folder of the prepared files, inside that of the texts.
FOLDER = "longbench"


@dataclass(frozen=True)
class LongBenchExample(Example):
    """An example that remembers the classes it is scored by (classification only), and the hash of its file."""

    classes: tuple[str, ...] = ()
    file_sha256: str = ""


class LongBench(Task):
    """Base of the LongBench tasks. Seed and params mean nothing to it: its texts are given, not drawn."""

    data: ClassVar[Dataset]

    def examples(
        self, spec: dict[str, Any], seed: int, indices: Iterable[int], count_tokens: Count, texts_dir: Path
    ) -> Iterator[Example]:
        self.check_params(dict(spec.get("params") or {}))
        room = Room(int(spec["length"]), count_tokens)
        for index in indices:
            yield self.make(Stream("task", self.name, index), room, {}, Draw(seed, index, 0, Path(texts_dir)))

    def make(self, stream: Stream, room: Room, params: dict[str, Any], draw: Draw) -> Example:
        """Row `draw.index` of the prepared file. A prompt longer than the room is cut when it is rendered.

        Raises
        ------
        KvcertError
            The file is missing or holds a bad row, or it has fewer rows than examples are asked for.
        """
        name, folder = self.data.name, draw.texts / FOLDER
        found, template = rows.load(folder, name), library.template(name)
        if draw.index >= len(found.rows):
            raise KvcertError(
                f"task {self.name}: example {draw.index} is asked for, but {folder / name}.jsonl has {len(found.rows)} "
                f"rows; set its examples to {len(found.rows)} or fewer"
            )
        row = found.rows[draw.index]
        return LongBenchExample(
            draw.index,
            template.before,
            row.text,
            template.question(row.input),
            "",
            row.answers,
            f"LongBench, {name}, _id {row.id}: Y. Bai et al. (ACL 2024); MIT; texts under their own licences",
            joiner="",
            chat=self.data.chat,
            stop=template.stop,
            at_most=room.length,
            origin=f"{name}.jsonl, line {row.line}",
            classes=row.classes,
            file_sha256=found.sha256,
        )

    def longest_answer(self) -> int | None:
        # Where only the configuration is checked, lm-eval may be missing; the worker needs it and asks again.
        return library.template(self.data.name).max_new_tokens if library.installed() else None

    def provenance(self, example: Example) -> dict[str, str | None]:
        assert isinstance(example, LongBenchExample)
        return {**versions(*library.PACKAGES), f"{self.data.name}.jsonl": f"sha256:{example.file_sha256}"}

    def score(self, prediction: str, example: Example) -> float:
        assert isinstance(example, LongBenchExample)
        metric = library.template(self.data.name).metric
        return library.score(metric, example.answers, example.classes, prediction)
