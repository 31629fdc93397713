"""The one exception that a user is meant to read."""

from __future__ import annotations


class KvcertError(Exception):
    """A problem told in one line: what is wrong, where, and what to do. The command line prints it and exits 2."""
