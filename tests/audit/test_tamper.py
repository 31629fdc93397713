"""Whatever is changed in a bundle, the check names the file: as it is, and with a manifest written again to match."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from kvcert.audit import check
from kvcert.audit.check import problems
from kvcert.audit.manifest import MANIFEST, read_manifest, write_manifest
from kvcert.errors import KvcertError

HEAD = ("claim", "kvcert", "verdict", "registration")
Mutation = Callable[[Path], None]


def text(name: str, old: str, new: str, count: int = 1) -> Mutation:
    """Replace text in a file."""

    def change(folder: Path) -> None:
        path = folder / name
        content = path.read_text()
        assert old in content, f"{name} holds no {old!r}"
        path.write_text(content.replace(old, new, count))

    return change


def edited(name: str, edit: Callable[[dict[str, Any]], None]) -> Mutation:
    """Edit a JSON file."""

    def change(folder: Path) -> None:
        path = folder / name
        content = json.loads(path.read_text())
        before = json.dumps(content)
        edit(content)
        assert json.dumps(content) != before
        path.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")

    return change


def table(name: str, edit: Callable[[pa.Table], pa.Table]) -> Mutation:
    """Edit a Parquet file."""

    def change(folder: Path) -> None:
        path = folder / name
        before = pq.read_table(path)
        after = edit(before)
        assert not after.equals(before)
        pq.write_table(after, path, compression="zstd")

    return change


def put(
    column: str, value: Callable[[Any], Any], where: Callable[[dict[str, Any]], bool]
) -> Callable[[pa.Table], pa.Table]:
    """Change one value: that of the first row that `where` accepts."""

    def edit(content: pa.Table) -> pa.Table:
        rows = content.to_pylist()
        row = next(index for index, row in enumerate(rows) if where(row))
        values = content[column].to_pylist()
        values[row] = value(values[row])
        index = content.column_names.index(column)
        return content.set_column(
            index, content.schema.field(index), pa.array(values, content.schema.field(index).type)
        )

    return edit


def failed(row: dict[str, Any]) -> bool:
    """A failed certified streaming run, of the kind that C6 ranks."""
    return bool(row["policy"] == "poisson" and row["setting"] == "streaming" and row["fail"])


def both_in(content: pa.Table) -> pa.Table:
    """Score and label changed together: no contradiction inside the row is left."""
    changed = put("fail", lambda old: False, failed)(content)
    return put("score", lambda old: 1.0, failed)(content).set_column(
        content.column_names.index("fail"), "fail", changed["fail"]
    )


def part(content: dict[str, Any], **changes: Any) -> None:
    """Change the first registered line of a claim's JSON."""
    content["parts"][0].update(changes)


def other(verdict: str) -> str:
    return "killed" if verdict == "survived" else "survived"


def claim_part(**changes: Any) -> Mutation:
    return edited("claim.json", lambda content: part(content, **changes))


#: What is done, to which claim's bundle, and the file that must be named.
MUTATIONS: dict[str, tuple[str, Mutation, str]] = {
    "one label": ("C6", table("runs.parquet", put("fail", lambda old: not old, failed)), "runs.parquet"),
    "one score": ("C6", table("runs.parquet", put("score", lambda old: 0.75, failed)), "runs.parquet"),
    "a score with its label": ("C6", table("runs.parquet", both_in), "rows.parquet"),
    "one signal": ("C6", table("runs.parquet", put("signal", lambda old: old * 1.001, failed)), "runs.parquet"),
    "one confidence": ("C6", table("runs.parquet", put("logp_mean", lambda old: old - 0.01, failed)), "runs.parquet"),
    "one run's threshold": ("C6", table("runs.parquet", put("fail_below", lambda old: 0.4, failed)), "runs.parquet"),
    "one run's budget": ("C6", table("runs.parquet", put("budget", lambda old: 0.3, failed)), "runs.parquet"),
    "one answer": ("C6", table("runs.parquet", put("answer", lambda old: old + " zz", failed)), "rows.parquet"),
    "one processor": (
        "C6", table("runs.parquet", put("versions", lambda old: '{"processor":"x"}', failed)),
        "provenance.json",
    ),
    "a row less": ("C6", table("runs.parquet", lambda t: t.slice(1)), "runs.parquet"),
    "a row twice": ("C6", table("runs.parquet", lambda t: pa.concat_tables([t, t.slice(0, 1)])), "runs.parquet"),
    "one step's certificate": (
        "C6", table("steps.parquet", put("certificate", lambda old: old * 1.01, lambda row: row["certificate"] is not None)),
        "steps.parquet",
    ),
    "one step's cover": (
        "C1", table("steps.parquet", put("covered", lambda old: not old, lambda row: row["covered"] is not None)),
        "steps.parquet",
    ),
    "a step less": ("C1", table("steps.parquet", lambda t: t.slice(1)), "steps.parquet"),
    "one radius": (
        "C1", table("heads.parquet", put("radius", lambda old: old * 1.01, lambda row: True)),
        "heads.parquet",
    ),
    "one head's error": (
        "C1", table("heads.parquet", put("error", lambda old: old * 2, lambda row: True)),
        "heads.parquet",
    ),
    "one head's guarded cover": (
        "C1", table("heads.parquet", put("wide", lambda old: not old, lambda row: True)),
        "heads.parquet",
    ),
    "one head's band": (
        "C1", table("heads.parquet", put("band", lambda old: (old + 1) % 6, lambda row: True)), "heads.parquet",
    ),
    "a head less": ("C1", table("heads.parquet", lambda t: t.slice(1)), "heads.parquet"),
    "a count": ("C1", table("counts.parquet", put("used", lambda old: old + 1, lambda row: True)), "counts.parquet"),
    "a derived label": (
        "C6", table("rows.parquet", put("induced", lambda old: not old, lambda row: True)),
        "rows.parquet",
    ),
    "a derived weight": (
        "C6", table("rows.parquet", put("weight", lambda old: old / 2, lambda row: True)),
        "rows.parquet",
    ),
    "a registered threshold": (
        "C6", text("registration/claims.yaml", "threshold: 0.70", "threshold: 0.60"), "registration/claims.yaml",
    ),
    "a byte of the plan": (
        "C6", text("registration/analysis-plan.md", "Analysis", "Analisys"),
        "registration/analysis-plan.md",
    ),
    "a frozen hash": (
        "C6", edited("registration/FROZEN.json", lambda c: c.update(date="2020-01-01")),
        "registration/FROZEN.json",
    ),
    "an amendment's reason": (
        "C6", text("registration/amendments.md", "first note", "second note"),
        "registration/amendments.md",
    ),
    "the amendments' count": (
        "C6", edited("registration/AMENDED.json", lambda c: c.update(entries=2)),
        "amendments.md",
    ),
    "the study": ("C6", edited("config.json", lambda c: c["study"].update(seed=1)), "claim.json"),
    "the claim's threshold": ("C6", claim_part(threshold=0.6), "claim.json"),
    "the claim's value": ("C6", edited("claim.json", lambda c: c.update(value=0.99)), "claim.json"),
    "a part's value": ("C6", claim_part(value=0.99), "claim.json"),
    "a figure's curve": (
        "C7",
        edited("claim.json", lambda c: c["curves"]["certificate"].__setitem__(3, 0.9)),
        "claim.json",
    ),
    "a figure's ROC": (
        "C6",
        edited("claim.json", lambda c: c["curves"]["streaming"]["certificate"]["pooled"]["tpr"].__setitem__(5, 5.0)),
        "claim.json",
    ),
    "an interval moved": (
        "C6",
        edited("claim.json", lambda c: [p.update(ci_low=-5.0, bonferroni_low=-5.0) for p in c["parts"]]),
        "claim.json",
    ),
    "a part's role": ("C6", claim_part(role="beside"), "claim.json"),
    "the verdict": ("C2", edited("claim.json", lambda c: c.update(verdict=other(c["verdict"]))), "claim.json"),
    "decisiveness": ("C6", edited("claim.json", lambda c: c.update(decisive=not c["decisive"])), "claim.json"),
    "the kill condition": ("C6", edited("claim.json", lambda c: c.update(kill_condition="Never.")), "claim.json"),
    "a stratum": ("C6", edited("claim.json", lambda c: c["strata"][0].update(value=0.123)), "claim.json"),
    "the paper's verdict": ("C6", edited("claim.json", lambda c: c.update(paper_verdict="killed")), "claim.json"),
    "the registration's hash": (
        "C6", edited("claim.json", lambda c: c["registration"].update(sha256="0" * 64)),
        "claim.json",
    ),
    "registered to exploratory": (
        "C6", edited("claim.json", lambda c: c["registration"].update(status="exploratory")), "claim.json",
    ),
    "the chain's head": (
        "C6", edited("claim.json", lambda c: c["registration"]["amendments"].update(count=0)),
        "claim.json",
    ),
    "the second computation": ("C6", edited("second.json", lambda c: c["parts"].update(pooled=0.5)), "second.json"),
    "a control's outcome": (
        "C6", edited("controls.json", lambda c: c["controls"][0].update(behaved=None)),
        "controls.json",
    ),
    "an example's answer": (
        "C6", edited("examples.json", lambda c: c["examples"][0].update(answer="other")),
        "examples.json",
    ),
    "the hardware": ("C6", edited("provenance.json", lambda c: c["logs"].update(device=["cuda"])), "provenance.json"),
    "a word of the page": ("C6", text("verdict.md", "Verdict:", "Result:"), "verdict.md"),
    "a word of the HTML page": ("C6", text("verdict.html", "Verdict:", "Result:"), "verdict.html"),
    "the gate's count": ("C6", edited("integrity.json", lambda c: c.update(runs=1)), "integrity.json"),
    "another bundle's claim": ("C6", edited("claim.json", lambda c: c.update(claim="C4")), "claim.json"),
}  # fmt: skip


def test_an_untouched_bundle_holds(bundle: Callable[[str], Path]) -> None:
    for name in (f"C{number}" for number in range(1, 8)):
        assert check(bundle(name))["claim"] == name
    assert len(MUTATIONS) >= 20


@pytest.mark.parametrize("what", MUTATIONS)
def test_a_mutation_is_caught_and_the_file_named(what: str, copied: Callable[[str], Path]) -> None:
    claim, mutate, named = MUTATIONS[what]
    folder = copied(claim)
    manifest = read_manifest(folder)
    head = {key: manifest[key] for key in HEAD}
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    mutate(folder)
    touched = [p.relative_to(folder).as_posix() for p, content in before.items() if p.read_bytes() != content]
    found = problems(folder)
    assert len(touched) == 1
    assert any(line.startswith(touched[0]) for line in found), found
    # The forger writes the manifest again, so that every hash fits.
    write_manifest(folder, head)
    again = problems(folder)
    assert any(named in line.split(": ")[0] or named in line for line in again), again


def test_the_check_says_it_in_one_line(copied: Callable[[str], Path]) -> None:
    folder = copied("C6")
    MUTATIONS["the claim's value"][1](folder)
    with pytest.raises(KvcertError, match=r"C6: claim\.json: changed") as caught:
        check(folder)
    assert "\n" not in str(caught.value)


def test_random_bytes_of_every_file(copied: Callable[[str], Path]) -> None:
    folder, rng = copied("C1"), np.random.default_rng(0)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        original = path.read_bytes()
        for place in rng.integers(0, len(original), 3):
            damaged = bytearray(original)
            damaged[place] ^= 1 << int(rng.integers(0, 8))
            path.write_bytes(bytes(damaged))
            with pytest.raises(KvcertError, match=path.name):
                check(folder)
        path.write_bytes(original)
    assert problems(folder) == []


def test_files_more_or_less(copied: Callable[[str], Path]) -> None:
    folder = copied("C2")
    (folder / "note.txt").write_text("mine")
    assert problems(folder) == ["note.txt: is not in the manifest"]
    (folder / "note.txt").unlink()
    (folder / "second.json").unlink()
    assert problems(folder) == ["second.json: is missing"]
    (folder / MANIFEST).unlink()
    with pytest.raises(KvcertError, match=r"MANIFEST\.json"):
        problems(folder)


def test_a_forgery_as_a_whole_is_told_by_the_announced_hash(bundle: Callable[[str], Path]) -> None:
    name = read_manifest(bundle("C2"))["sha256"]
    assert check(bundle("C2"), name)["sha256"] == name
    with pytest.raises(KvcertError, match="was announced"):
        check(bundle("C2"), "0" * 64)


def test_rows_are_hashed_whatever_the_encoding(copied: Callable[[str], Path]) -> None:
    folder = copied("C2")
    rows = pq.read_table(folder / "runs.parquet")
    pq.write_table(rows, folder / "runs.parquet", compression="snappy", row_group_size=17)
    assert problems(folder) == ["runs.parquet: changed: its SHA-256 is not the manifest's"]
    manifest = read_manifest(folder)
    again = write_manifest(folder, {key: manifest[key] for key in HEAD})
    assert again["rows"] == manifest["rows"]
    assert problems(folder) == []
    assert pc.sum(rows["n_steps"]).as_py() > 0
