"""Scores that say `registered` must be of the registered study: what is shown as such is checked before it is shown."""

from __future__ import annotations

import json
from pathlib import Path

from kvcert.errors import KvcertError
from kvcert.files import sha256_json
from kvcert.registry.frozen import FROZEN, registered


def require_honest(results: Path, root: Path) -> None:
    """Refuse when a claim's JSON calls itself registered and the frozen registration says otherwise.

    Compares the study beside the results (`config.json`) and the registration's hash with FROZEN.json. Without a
    registration in `root` there is nothing to compare with, and nothing is refused.

    Raises
    ------
    KvcertError
        One line that names the claim's file.
    """
    results, root = Path(results), Path(root)
    if not (root / FROZEN).is_file():
        return
    for path in sorted((results / "claims").glob("C*.json")):
        try:
            told = json.loads(path.read_text()).get("registration") or {}
        except (ValueError, AttributeError):
            continue  # whoever reads it names the damage
        if told.get("status") != "registered":
            continue
        found = registered(root)
        if told.get("sha256") != found.sha256:
            raise KvcertError(
                f"{path}: scored under another registration ({told.get('sha256')}); run `kvcert score` again"
            )
        try:
            study = json.loads((results / "config.json").read_text())["study"]
        except (OSError, ValueError, KeyError):
            raise KvcertError(
                f"{results / 'config.json'}: cannot be read; run `kvcert check` and `kvcert score`"
            ) from None
        if sha256_json(study) != found.study:
            raise KvcertError(
                f"{path}: calls itself registered, its grid is not the frozen one; run `kvcert score` again"
            )
