"""The log of one piece of work: everything it prints goes to a file and, line by line, to the console."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import TextIO

from kvcert.errors import KvcertError


class Tee:
    """A text stream that writes to a console and, as long as it takes it, to a file."""

    encoding = "utf-8"

    def __init__(self, console: TextIO, file: TextIO) -> None:
        self._console, self._file = console, file

    def write(self, text: str) -> int:
        """Write to both; flushed at once, so that a killed worker leaves its last words."""
        self._console.write(text)
        with suppress(OSError):  # a full disk must not hide the words that say so
            self._file.write(text)
        self.flush()
        return len(text)

    def flush(self) -> None:
        """Flush both."""
        self._console.flush()
        with suppress(OSError):
            self._file.flush()

    def isatty(self) -> bool:
        """Never a terminal: a progress bar that redraws its line would fill the file."""
        return False


def second_name(path: Path) -> Path | None:
    """Give the log a second name, `<log>.1` or the next free number; None where the file system has no hard links.

    The workflow deletes a log before it tries again. Under its second name the log of a failed or killed attempt stays.
    """
    for number in range(1, 1000):
        name = path.with_name(f"{path.name}.{number}")
        try:
            name.hardlink_to(path)
        except FileExistsError:
            continue
        except OSError:
            return None
        return name
    return None


@contextmanager
def logged(path: Path | str) -> Iterator[None]:
    """Copy what the block prints into `path`; a `KvcertError` ends the process with its one line and status 2.

    Any other exception is a fault of ours: its traceback goes to the file and it is raised again. The log of a block that
    did not end well stays as `<log>.1`, `<log>.2`, … when the next attempt begins anew.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with _closing_quietly(open(path, "w", encoding="utf-8")) as file:
        kept = second_name(path)
        out, err = Tee(sys.stdout, file), Tee(sys.stderr, file)
        try:
            with redirect_stdout(out), redirect_stderr(err):
                yield
            if kept is not None:
                kept.unlink(missing_ok=True)
        except KvcertError as problem:
            print(f"kvcert: {problem}", file=err)
            raise SystemExit(2) from None
        except Exception:
            with suppress(OSError):
                traceback.print_exc(file=file)
            raise


@contextmanager
def _closing_quietly(file: TextIO) -> Iterator[TextIO]:
    """Close the file at the end; what a full disk refuses to take is lost."""
    try:
        yield file
    finally:
        with suppress(OSError):
            file.close()
