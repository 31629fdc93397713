"""The commands behind `kvcert`, in the order of the help page. Heavy imports wait until a command runs."""

from __future__ import annotations

from kvcert.commands import auditing, caring, exhibiting, reporting, running, scoring, showing
from kvcert.commands.command import Command

COMMANDS: tuple[Command, ...] = (
    *running.COMMANDS,
    *caring.COMMANDS,
    *scoring.COMMANDS,
    *showing.COMMANDS,
    *auditing.COMMANDS,
    *reporting.COMMANDS,
    *exhibiting.COMMANDS,
)

__all__ = ["COMMANDS", "Command"]
