"""Which configuration and which folders a command works on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from kvcert.errors import KvcertError

DEFAULT_CONFIG = Path("config/config.yaml")
#: Resolved configuration that a run leaves beside its results.
STORED_CONFIG = "config.json"


class Context:
    """Lazy view of `--config` and `--results`.

    Parameters
    ----------
    configs : sequence of str or None
        Files given with `--config`, merged in order.
    results : str or None
        Folder given with `--results`; it replaces `run.results`.
    """

    def __init__(self, configs: Sequence[str] | None, results: str | None) -> None:
        self._configs = [Path(name) for name in configs or []]
        self._results = Path(results) if results is not None else None
        self.root = Path.cwd()

    @cached_property
    def config(self) -> dict[str, Any]:
        """The resolved configuration: `--config` if given, else the one beside `--results`, else the default."""
        config = self._load()
        if self._results is not None:
            if Path(config["run"]["results"]) != self._results:
                config["run"]["figures"] = str(self._results / "figures")
            config["run"]["results"] = str(self._results)
        return config

    def _load(self) -> dict[str, Any]:
        from kvcert.config import load, resolve

        if not self._configs and self._results is not None and (self._results / STORED_CONFIG).is_file():
            path = self._results / STORED_CONFIG
            try:
                return resolve(json.loads(path.read_text()))
            except ValueError as error:
                raise KvcertError(
                    f"{path} is not valid JSON ({error}); name the grid with --config FILE"
                ) from None
        paths = self._configs or [DEFAULT_CONFIG]
        for path in paths:
            if not path.is_file():
                hint = (
                    ""
                    if self._configs
                    else "; run kvcert in the project's folder, or name one with --config FILE"
                )
                raise KvcertError(f"no configuration at {path}{hint}")
        return load(*paths)

    @property
    def results(self) -> Path:
        """The results folder; needs no configuration when `--results` was given."""
        return self._results if self._results is not None else Path(self.config["run"]["results"])

    def existing_results(self) -> Path:
        """The results folder, or a clear line when there is none."""
        results = self.results
        if not results.is_dir():
            raise KvcertError(
                f"no results at {results}; run `make reproduce` or `make smoke`, or name --results DIR"
            )
        return results

    def with_overlay(self, path: str) -> Context:
        """The same context with one more overlay on top of `--config` (or of the default configuration)."""
        results = str(self._results) if self._results is not None else None
        return Context([*map(str, self._configs or [DEFAULT_CONFIG]), path], results)
