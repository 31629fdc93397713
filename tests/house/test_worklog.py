"""The log of a job: everything is kept, problems are one line, faults keep their traceback."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kvcert.errors import KvcertError
from kvcert.worklog import logged


def test_both_streams_go_to_the_file_and_the_console(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "logs" / "job.log"
    with logged(path):
        print("out")
        print("err", file=sys.stderr)
        assert path.read_text() == "out\nerr\n", "written at once: a killed job keeps its last words"
    assert capsys.readouterr() == ("out\n", "err\n")
    print("after")
    assert "after" not in path.read_text()


def test_a_problem_is_one_line_and_status_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught, logged(tmp_path / "job.log"):
        raise KvcertError("wheel x: wrong hash; delete it")
    assert caught.value.code == 2
    assert (tmp_path / "job.log").read_text() == "kvcert: wheel x: wrong hash; delete it\n"
    assert capsys.readouterr().err == "kvcert: wheel x: wrong hash; delete it\n"


def test_a_fault_is_raised_and_its_traceback_kept(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), logged(tmp_path / "job.log"):
        print(1 // 0)
    text = (tmp_path / "job.log").read_text()
    assert "Traceback" in text
    assert "ZeroDivisionError" in text


def test_failed_attempts_are_kept(tmp_path: Path) -> None:
    """The workflow deletes the log before each attempt; that of a failed one stays under another name."""
    path = tmp_path / "job.log"
    for attempt in (1, 2, 3):
        path.unlink(missing_ok=True)
        with pytest.raises(SystemExit), logged(path):
            raise KvcertError(f"attempt {attempt}")
    path.unlink()
    with logged(path):
        print("attempt 4")
    texts = {file.name: file.read_text() for file in tmp_path.iterdir()}
    failed = {f"job.log.{attempt}": f"kvcert: attempt {attempt}\n" for attempt in (1, 2, 3)}
    assert texts == {"job.log": "attempt 4\n"} | failed


def test_a_full_disk_does_not_hide_its_own_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """/dev/full refuses every byte: the console still gets the one line."""
    with pytest.raises(SystemExit), logged(Path("/dev/full")):
        raise KvcertError("no space left for x")
    assert capsys.readouterr().err == "kvcert: no space left for x\n"
