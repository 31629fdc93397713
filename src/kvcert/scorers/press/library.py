"""kvpress itself, or one line that says what to install."""

from __future__ import annotations

import re
from functools import cache
from importlib import metadata
from typing import Any

from kvcert.errors import KvcertError
from kvcert.presses import SUPPORTED


@cache
def library() -> Any:
    """The module `kvpress`, imported on first use.

    Importing it wraps every registered attention function (for its head-wise presses). That changes no number here: the
    wrapper only acts on modules that such a press has marked, and none is ever applied to our models.

    Raises
    ------
    KvcertError when kvpress is missing or is not one of the supported releases.
    """
    low, high = (".".join(map(str, version)) for version in SUPPORTED)
    advice = f"install the extra: pip install 'kvcert[baselines]' (kvpress >= {low}, < {high})"
    try:
        found = metadata.version("kvpress")
    except metadata.PackageNotFoundError:
        raise KvcertError(f"scorers kvpress_*: kvpress is not installed; {advice}") from None
    numbers = tuple(int(part) for part in re.findall(r"\d+", found)[:3])
    if not SUPPORTED[0] <= numbers < SUPPORTED[1]:
        raise KvcertError(f"scorers kvpress_*: kvpress {found} is not supported; {advice}")
    import kvpress

    return kvpress
