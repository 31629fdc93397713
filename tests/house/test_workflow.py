"""The graph: what a dry run promises, what makes a shard run again, and that the rules pass Snakemake's own review."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from project import ROOT, build, dry, jobs, snakemake

from kvcert.config import load
from kvcert.grid import shards


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return build(tmp_path)


def test_default_grid(project: Path) -> None:
    output, specs = dry(project), shards(load(ROOT / "config/config.yaml"))
    once = dict.fromkeys(("setup", "integrity", "score", "tables", "figures", "report", "all"), 1)
    assert jobs(output) == once | {"cell": len(specs), "total": len(specs) + len(once)}
    assert f"shards: {len(specs)}, done 0, to run {len(specs)}" in output
    for spec in specs:
        assert (
            f"Shard {spec['shard']}: {len(spec['examples'])} examples of 768 tokens, 12 rows each" in output
        )


def test_smoke_grid_has_its_own_folders_and_shares_the_cache(project: Path) -> None:
    output = dry(project, "--configfile", "config/smoke.yaml", "--quiet", "host")
    assert jobs(output)["cell"] == 5
    assert "results-smoke/runs/smollm2-135m.facts.320.0.parquet" in output
    assert "figures-smoke/verdicts.pdf" in output
    assert not re.search(r"\b(results|figures)/", output)
    prepared = re.findall(r"\.kvcert/prepared/\w+\.json", output)
    assert set(prepared) == set(re.findall(r"\.kvcert/prepared/\w+\.json", dry(project, "--quiet", "host")))
    assert prepared


def test_folders_from_the_command_line(project: Path, tmp_path: Path) -> None:
    output = dry(project, "--quiet", "host", "--config", f"results={tmp_path}/elsewhere", "figures=plots")
    assert f"{tmp_path}/elsewhere/verdicts.csv" in output
    assert "plots/verdicts.png" in output


@pytest.mark.parametrize(
    ("overlay", "expected"),
    [
        ("study: {tasks: [{name: sudoku, length: 768, examples: 1}]}", "config: study.tasks[0].name: nothing is called"),
        ("study: {seeds: 1}", "config: study.seeds: unknown key (did you mean seed?)"),
        ("run: {results: ../out}", "config: run.results: ../out leaves the project"),
    ],
)  # fmt: skip
def test_a_bad_configuration_stops_it_with_one_line(project: Path, overlay: str, expected: str) -> None:
    (project / "bad.yaml").write_text(overlay)
    done = snakemake(project, "-n", "--configfile", "bad.yaml")
    assert done.returncode != 0
    assert expected in done.stdout
    assert "Traceback" not in done.stdout


def test_every_rule_is_complete() -> None:
    """Each rule has every directive that this project asks for, and calls a script of ours."""
    text = "".join(path.read_text() for path in sorted((ROOT / "workflow/rules").glob("*.smk")))
    rules = dict(re.findall(r"^rule (\w+):\n((?:(?:    .*)?\n)+)", text, re.MULTILINE))
    assert set(rules) >= {"setup", "cell", "integrity", "score", "tables", "figures"}
    for name, body in rules.items():
        directives = set(re.findall(r"^    (\w+):", body, re.MULTILINE))
        wanted = {"output", "log", "params", "message", "threads", "conda", "script"}
        assert wanted <= directives, f"rule {name} lacks {wanted - directives}"
        script = re.search(r'"\.\./scripts/(\w+\.py)"', body)
        assert script is not None
        assert (ROOT / "workflow/scripts" / script[1]).is_file()


def test_lint_is_clean(project: Path) -> None:
    done = snakemake(project, "--lint")
    assert done.returncode == 0, done.stdout
