"""Task families, one per file. A new file in this folder with a registered `Task` is all that a new task needs."""

from __future__ import annotations

import importlib
import pkgutil

from kvcert.errors import KvcertError
from kvcert.tasks.base import Example, Param, Task

__all__ = ["Example", "Param", "Task", "get", "names", "register"]

_TASKS: dict[str, Task] = {}


def register(cls: type[Task]) -> type[Task]:
    """Class decorator: make a task known under its `name`."""
    if cls.name in _TASKS and type(_TASKS[cls.name]) is not cls:
        raise KvcertError(f"task {cls.name}: registered twice")
    _TASKS[cls.name] = cls()
    return cls


def names() -> list[str]:
    """All known task names, sorted."""
    _discover()
    return sorted(_TASKS)


def get(name: str) -> Task:
    """The task called `name`; an unknown one is a KvcertError that lists the known ones."""
    _discover()
    if name not in _TASKS:
        raise KvcertError(f"task {name!r}: unknown; known are {', '.join(sorted(_TASKS))}")
    return _TASKS[name]


def _discover() -> None:
    """Import every module of this package, so that decorators run."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
