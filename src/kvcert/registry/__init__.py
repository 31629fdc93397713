"""The frozen registration: claims, analysis plan and the scientific part of the configuration. No torch here."""

from __future__ import annotations

from kvcert.registry.claims_file import load_claims
from kvcert.registry.frozen import FILES, FROZEN, freeze, standing, status, verify

__all__ = ["FILES", "FROZEN", "freeze", "load_claims", "standing", "status", "verify"]
