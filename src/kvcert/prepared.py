"""Which preparation a grid needs: the name of the file that says it was done, and what only some tasks ask for."""

from __future__ import annotations

from typing import Any

from kvcert.errors import KvcertError
from kvcert.files import sha256_json
from kvcert.installed import has
from kvcert.punkt import PUNKT_WHEEL
from kvcert.tasks.longbench.catalogue import needed

#: How the names of tasks begin → the wheel that they need beside the texts that every grid gets.
EXTRAS = {"ruler_": PUNKT_WHEEL}


def extras(study: dict[str, Any]) -> list[str]:
    """The further wheels that a study's tasks need, in a fixed order."""
    names = [task["name"] for task in study.get("tasks", ())]
    return [wheel for start, wheel in EXTRAS.items() if any(name.startswith(start) for name in names)]


def prepared_file(config: dict[str, Any]) -> str:
    """The file that the workflow's preparation leaves: other models, wheels, LongBench files or folder, another file."""
    study, run = config["study"], config["run"]
    asked = {"models": study["models"]}
    if further := extras(study):
        asked["extras"] = further
    if datasets := needed(study):
        asked["longbench"] = [datasets, run["longbench"]]
    digest = sha256_json(asked if len(asked) > 1 else study["models"])
    return f"{run['cache']}/prepared/{digest[:16]}.json"


def require_lm_eval(who: str) -> None:
    """A `KvcertError` that names the extra, where lm-eval is not installed."""
    if not has("lm_eval"):
        raise KvcertError(
            f"{who}: lm-eval is not installed; install it with `pip install 'kvcert[longbench]'`"
        )
