"""The command line: help that teaches, one clear line per problem, and no torch where none is needed."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest

from kvcert import cli
from kvcert.commands import COMMANDS
from kvcert.commands.context import Context
from kvcert.errors import KvcertError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def in_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def fails(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """Run a command that must exit 2 with one line on stderr; return that line."""
    assert cli.main(argv) == 2
    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    assert len(lines) == 1, captured.err
    assert lines[0].startswith("kvcert: ")
    assert captured.out == ""
    return lines[0]


def test_help_names_every_command_and_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["--help"])
    text = capsys.readouterr().out
    assert stop.value.code == 0
    wanted = [
        "prepare",
        "shard",
        "check",
        "score",
        "tables",
        "figures",
        "verdicts",
        "cells",
        "pilot",
        "freeze",
        "verify",
        "schema",
        "publish",
        "report",
        "amend",
        "register-export",
        "audit",
        "crate",
        "unlock",
        "doctor",
        "compact",
        "exhibit",
        "exhibits",
        "freeze-exhibits",
    ]
    assert sorted(command.name for command in COMMANDS) == sorted(wanted)
    for name in wanted:
        assert f"    {name} " in text or f"    {name}\n" in text
    assert "kvcert --results results/smoke verdicts" in text


def test_no_command_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 0
    assert "COMMAND" in capsys.readouterr().out


@pytest.mark.parametrize("name", [command.name for command in COMMANDS])
def test_every_command_has_its_own_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main([name, "--help"])
    assert stop.value.code == 0
    assert "--config FILE" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("kvcert ")


@pytest.mark.parametrize("command", ["verdicts", "tables", "figures", "check", "score", "report"])
def test_missing_results(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = fails(capsys, command, "--results", str(tmp_path / "nothing"))
    assert str(tmp_path / "nothing") in line
    assert "--results" in line


def test_results_without_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "kvcert score" in fails(capsys, "--results", str(tmp_path), "verdicts")


def test_damaged_score(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "claims").mkdir()
    (tmp_path / "claims" / "C3.json").write_text("{")
    assert "C3.json" in fails(capsys, "--results", str(tmp_path), "verdicts")


def test_missing_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    assert "nope.yaml" in fails(capsys, "--config", "nope.yaml", "cells")


def test_outside_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "--config FILE" in fails(capsys, "cells")


def test_unknown_shard_suggests_names(capsys: pytest.CaptureFixture[str]) -> None:
    line = fails(capsys, "shard", "smollm2-135m.niah.768")
    assert "near: smollm2-135m.niah.768." in line


def test_missing_pilot_overlay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "pilot" in fails(capsys, "pilot", "--overlay", str(tmp_path / "none.yaml"))


@pytest.mark.parametrize(("command", "name"), [("tables", "nosuch"), ("figures", "nosuch"), ("score", "C9")])
def test_unknown_names_list_the_known(command: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main([command, name])
    assert stop.value.code == 2
    text = capsys.readouterr().err
    assert name in text
    assert {"tables": "accuracy", "figures": "scheduling", "score": "C7"}[command] in text


def test_overlays_before_and_after_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = tmp_path / "small.yaml"
    small.write_text("run: {shard_examples: 48}\n")
    assert cli.main(["--config", "config/config.yaml", "cells", "--config", str(small), "--shards",
                     "--results", str(tmp_path)]) == 0  # fmt: skip
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"open\tsmollm2-135m.{task}.768.0"
        for task in ("squad_long", "hotpot_long", "niah", "facts", "json_lookup")
    ]


def test_interrupt_exits_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(results: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kvcert.paper.console.print_verdicts", interrupt)
    assert cli.main(["--results", str(ROOT), "verdicts"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_no_space_left_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr("kvcert.logs.document.write", full)
    assert fails(capsys, "schema", "--output", "there.md") == "kvcert: there.md: No space left on device"


def test_results_read_the_configuration_stored_beside_them(tmp_path: Path, base_config: dict) -> None:
    base_config = json.loads(json.dumps(base_config))
    base_config["study"]["seed"] = 99
    (tmp_path / "config.json").write_text(json.dumps(base_config))
    config = Context(None, str(tmp_path)).config
    assert config["study"]["seed"] == 99
    assert config["run"]["results"] == str(tmp_path)
    assert config["run"]["figures"] == str(tmp_path / "figures")  # never over the figures of another run
    assert Context(["config/config.yaml"], str(tmp_path)).config["study"]["seed"] == 2607


def test_damaged_stored_configuration(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(KvcertError, match=r"config\.json is not valid JSON"):
        _ = Context(None, str(tmp_path)).config


def test_unlock_says_what_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lock = tmp_path / ".snakemake" / "locks" / "0.input.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    assert cli.main(["unlock"]) == 0
    assert not lock.exists()
    assert "stale" in capsys.readouterr().out


def test_schema_writes_the_page(tmp_path: Path) -> None:
    page = tmp_path / "schema.md"
    assert cli.main(["schema", "--output", str(page)]) == 0
    assert page.read_text() == (ROOT / "docs" / "schema.md").read_text(), (
        "docs/schema.md is old: run `kvcert schema`"
    )


def test_reading_commands_import_no_torch(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom kvcert import cli\n"
        f"cli.main(['--results', {str(tmp_path)!r}, 'figures', '--figures', {str(tmp_path)!r}])\n"
        f"cli.main(['--results', {str(tmp_path)!r}, 'tables'])\ncli.main(['cells'])\n"
        "bad = {'torch', 'transformers', 'snakemake'} & set(sys.modules)\nsys.exit(f'imported: {bad}' if bad else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT,
                          env={"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"}, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "scheduling.pdf").is_file()
    assert (tmp_path / "tables" / "attribution.tex").is_file()


def test_plain_output_survives_an_ascii_console(tmp_path: Path) -> None:
    (tmp_path / "claims").mkdir()
    claim = {"claim": "C1", "title": "Coverage", "value": 0.97, "verdict": "survived"}
    (tmp_path / "claims" / "C1.json").write_text(json.dumps(claim))
    command = [sys.executable, "-m", "kvcert.cli", "--results", str(tmp_path), "verdicts"]
    environment = {"PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, cwd=ROOT, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert b"survived" in done.stdout
