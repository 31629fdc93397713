"""What a command is: a name, a line of help, its own options, and a function."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kvcert.commands.context import Context


@dataclass(frozen=True)
class Command:
    """One entry of the command line."""

    name: str
    help: str
    run: Callable[[argparse.Namespace, Context], None]
    options: Callable[[argparse.ArgumentParser], None] | None = None


def one_of(known: Iterable[str], kind: str) -> Callable[[str], str]:
    """Argument type that accepts a known name; unlike `choices`, it also allows an empty list of names."""
    names = tuple(known)

    def parse(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(f"no {kind} {text!r}; there are {', '.join(names)}")
        return text

    return parse
