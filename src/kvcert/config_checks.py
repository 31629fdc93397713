"""Checks that a schema cannot express: values that must fit together, and folders that must stay where they belong."""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from kvcert.errors import KvcertError
from kvcert.grid import OWN_SCORE, PARAMS, label
from kvcert.presses import PRESSES
from kvcert.turns import check_row

#: Policies that give the same selection at every draw.
DETERMINISTIC = ("full", "topk", "streaming", "adakv", "lru")


def check_together(config: dict[str, Any]) -> None:
    """Raise a `KvcertError` that names the key when values of a schema-valid configuration do not fit together."""
    _check_finite("", config)
    _check_names(config["study"])
    _check_rows(config["study"])
    _check_budgets(config["study"])
    _check_folders(config)


def check_known(config: dict[str, Any]) -> None:
    """Raise a `KvcertError` when a task, policy or scorer has no code behind it, before anything is computed."""
    from kvcert import tasks

    study = config["study"]
    _refuse_unknown(
        [(f"tasks[{i}].name", task["name"]) for i, task in enumerate(study["tasks"])], tasks.names()
    )
    for i, task in enumerate(study["tasks"]):
        try:
            tasks.get(task["name"]).check_params(task["params"])
        except KvcertError as error:
            raise KvcertError(f"config: study.tasks[{i}].params: {error}") from None
        try:
            tasks.get(task["name"]).check_answer(task.get("max_new_tokens", study["max_new_tokens"]))
        except KvcertError as error:
            raise KvcertError(f"config: study.tasks[{i}].max_new_tokens: {error}") from None
    for i, row in enumerate(study["rows"]):
        _check_params(f"config: study.rows[{i}].params", row)
    policies = [(f"rows[{i}].policy", row["policy"]) for i, row in enumerate(study["rows"])]
    _refuse_unknown(policies, _modules("policies"))
    scorers = [(f"rows[{i}].scorer", row["scorer"]) for i, row in enumerate(study["rows"]) if "scorer" in row]
    _refuse_unknown([("scorer", study["scorer"]), *scorers], [*_modules("scorers"), *PRESSES])
    turns = [task["name"] for task in study["tasks"] if tasks.get(task["name"]).multi_turn]
    if turns and "streaming" in study["settings"]:
        for i, row in enumerate(study["rows"]):
            check_row(f"config: study.rows[{i}]", turns[0], row, study["scorer"])


def _check_params(where: str, row: dict[str, Any]) -> None:
    """A policy takes the parameters that `grid.PARAMS` lists for it, all of them, within their bounds."""
    bounds, given = PARAMS.get(row["policy"], {}), row.get("params") or {}
    known = f"{row['policy']} takes {', '.join(bounds) or 'no parameters'}"
    if unknown := sorted(set(given) - set(bounds)):
        raise KvcertError(f"{where}.{unknown[0]}: unknown; {known}")
    for name, (low, high) in bounds.items():
        value = given.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
            raise KvcertError(
                f"{where}.{name}: must be a number from {low:g} to {high:g}, not {value!r}; {known}"
            )


def _modules(package: str) -> list[str]:
    """Names of the policies or scorers, one a file; read from the folder, since importing them would bring torch."""
    files = (Path(__file__).parent / package).glob("*.py")
    return sorted(file.stem for file in files if file.stem not in ("__init__", "base"))


def _refuse_unknown(given: list[tuple[str, str]], known: list[str]) -> None:
    for key, name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise KvcertError(
                f"config: study.{key}: nothing is called {name!r}; {hint}known: {', '.join(known)}"
            )


def _check_finite(where: str, value: Any) -> None:
    """NaN passes every `minimum` of a schema, so look for it by hand."""
    if isinstance(value, float) and not math.isfinite(value):
        raise KvcertError(f"config: {where}: {value} is not a finite number")
    children: Iterator[tuple[Any, Any]] = iter(())
    if isinstance(value, dict):
        children = ((f"{where}.{key}".lstrip("."), child) for key, child in value.items())
    elif isinstance(value, list):
        children = ((f"{where}[{index}]", child) for index, child in enumerate(value))
    for path, child in children:
        _check_finite(path, child)


def _check_names(study: dict[str, Any]) -> None:
    """Models, and tasks at one length, must be told apart by name: their logs are named after them."""
    models = [model["name"] for model in study["models"]]
    _refuse_twice("models", models, [f"the model {name}" for name in models])
    tasks = [(task["name"], task["length"]) for task in study["tasks"]]
    _refuse_twice("tasks", tasks, [f"{name} at {length} tokens" for name, length in tasks])


def _refuse_twice(key: str, values: list[Any], labels: list[str]) -> None:
    counts = Counter(values)
    for index in reversed(range(len(values))):
        if counts[values[index]] > 1:
            raise KvcertError(f"config: study.{key}[{index}]: {labels[index]} is listed twice")


def _check_rows(study: dict[str, Any]) -> None:
    rows = study["rows"]
    full = [row for row in rows if row["policy"] == "full"]
    if len(full) != 1:
        raise KvcertError(
            f"config: study.rows: exactly one row has the policy full, found {len(full)}: it is the truth"
        )
    for index, row in enumerate(rows):
        if row["policy"] == "full" and row["budgets"] != [1]:
            raise KvcertError(
                f"config: study.rows[{index}].budgets: full keeps everything; leave its budgets out"
            )
        if row["draws"] > 1 and row["policy"] in DETERMINISTIC:
            raise KvcertError(
                f"config: study.rows[{index}].draws: {row['policy']} has no randomness; leave draws out"
            )
        if "scorer" in row and row["policy"] in OWN_SCORE:
            raise KvcertError(
                f"config: study.rows[{index}].scorer: {row['policy']} has a score of its own "
                f"({OWN_SCORE[row['policy']]}); leave scorer out"
            )
    expanded = [
        (index, (label(row), budget, row.get("scorer", study["scorer"])))
        for index, row in enumerate(rows)
        for budget in row["budgets"]
    ]
    counts = Counter(key for _, key in expanded)
    for index, key in reversed(expanded):
        if counts[key] > 1:
            raise KvcertError(f"config: study.rows[{index}]: {key[0]} at budget {key[1]:g} is listed twice")


def _check_budgets(study: dict[str, Any]) -> None:
    """A budget must leave room beside the protected tokens; the exact context length is checked again when it is known."""
    constants = study["constants"]
    protected = constants["n_sink"] + constants["n_recent"]
    shortest = min(study["tasks"], key=lambda task: task["length"])
    for index, row in enumerate(study["rows"]):
        for place, budget in enumerate(row["budgets"]):
            capacity = math.floor(budget * shortest["length"] + 0.5)
            if budget < 1 and capacity <= protected:
                raise KvcertError(
                    f"config: study.rows[{index}].budgets[{place}]: {budget:g} of {shortest['length']} tokens "
                    f"({shortest['name']}) keeps {capacity}, but n_sink + n_recent = {protected} are always kept; "
                    "raise the budget or the length"
                )


def _check_folders(config: dict[str, Any]) -> None:
    for key in ("results", "figures", "cache"):
        _check_folder(f"run.{key}", config["run"][key])
    if config["run"]["longbench"].startswith("~"):
        raise KvcertError(
            f"config: run.longbench: {config['run']['longbench']} is not expanded; write the absolute path"
        )
    for index, model in enumerate(config["study"]["models"]):
        if "file" in model and (
            PurePosixPath(model["file"]).is_absolute() or ".." in PurePosixPath(model["file"]).parts
        ):
            raise KvcertError(
                f"config: study.models[{index}].file: {model['file']} is not a path inside the wheel"
            )


def _check_folder(key: str, text: str) -> None:
    """A folder is inside the project (relative) or named in full (absolute); `..` and `~` are neither."""
    path = PurePosixPath(text)
    if ".." in path.parts:
        raise KvcertError(
            f"config: {key}: {text} leaves the project with '..'; write the absolute path to put it elsewhere"
        )
    if text.startswith("~"):
        raise KvcertError(f"config: {key}: {text} is not expanded; write the absolute path")
    if path == PurePosixPath(".") or path == PurePosixPath("/"):
        raise KvcertError(f"config: {key}: {text} is no folder of its own; name one, for example results")
    if any(character in text for character in "{}*?\n"):
        raise KvcertError(f"config: {key}: {text!r} holds a character that a workflow path cannot have")
