"""The frozen registration: claims, analysis plan and the scientific part of the configuration. No torch here."""

from __future__ import annotations

from kvcert.registry.amend import amend
from kvcert.registry.claims_file import load_claims
from kvcert.registry.frozen import (
    FILES,
    FROZEN,
    code_notes,
    freeze,
    registered,
    standing,
    status,
    verify,
)

__all__ = [
    "FILES",
    "FROZEN",
    "amend",
    "code_notes",
    "freeze",
    "load_claims",
    "registered",
    "standing",
    "status",
    "verify",
]
