"""The log of one piece of work: everything it prints goes to a file and, line by line, to the console."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TextIO

from kvcert.errors import KvcertError


class Tee:
    """A text stream that writes to two others."""

    encoding = "utf-8"

    def __init__(self, first: TextIO, second: TextIO) -> None:
        self._streams = (first, second)

    def write(self, text: str) -> int:
        """Write to both; flushed at once, so that a killed worker leaves its last words."""
        for stream in self._streams:
            stream.write(text)
            stream.flush()
        return len(text)

    def flush(self) -> None:
        """Flush both."""
        for stream in self._streams:
            stream.flush()

    def isatty(self) -> bool:
        """Never a terminal: a progress bar that redraws its line would fill the file."""
        return False


@contextmanager
def logged(path: Path | str) -> Iterator[None]:
    """Copy what the block prints into `path`; a `KvcertError` ends the process with its one line and status 2.

    Any other exception is a fault of ours: its traceback goes to the file and it is raised again.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        out, err = Tee(sys.stdout, file), Tee(sys.stderr, file)
        try:
            with redirect_stdout(out), redirect_stderr(err):
                yield
        except KvcertError as problem:
            print(f"kvcert: {problem}", file=err)
            raise SystemExit(2) from None
        except Exception:
            traceback.print_exc(file=file)
            raise
