"""Task parameters that check themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kvcert.errors import KvcertError


@dataclass(frozen=True)
class Param:
    """A task parameter: an integer in [low, high], or one of `choices`; with its default and its meaning."""

    default: Any
    about: str
    low: int = 0
    high: int = 1_000_000
    choices: tuple[str, ...] = ()

    def check(self, where: str, value: Any) -> Any:
        """Return `value` or raise a KvcertError that names the parameter."""
        if self.choices:
            if value not in self.choices:
                raise KvcertError(f"{where}: must be one of {', '.join(self.choices)}, not {value!r}")
        elif isinstance(value, bool) or not isinstance(value, int) or not self.low <= value <= self.high:
            raise KvcertError(f"{where}: must be an integer from {self.low} to {self.high}, not {value!r}")
        return value
