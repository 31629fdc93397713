"""Data and code inside the page: JSON that cannot end its element, and hashes that let only our own code run."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from markupsafe import Markup

#: All that HTML or an old JavaScript parser could read as more than text. JSON reads the escapes back as the same letters.
_ESCAPES = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}


def embedded_json(value: Any) -> Markup:
    """Compact JSON for a `<script type="application/json">` element, whatever texts it holds.

    Non-ASCII letters and control characters are escaped as well, so no encoding or normalisation of the file can
    change them. Not-a-number and infinities are an error: JSON has none.
    """
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return Markup(text.translate(_ESCAPES))


def source_hash(text: str) -> str:
    """`sha256-…` of an inline script or sheet, as a content security policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def policy(script: str, sheet: str) -> str:
    """The page's content security policy: nothing but this script, this sheet, and pictures held in the page itself."""
    return (
        f"default-src 'none'; script-src '{source_hash(script)}'; style-src '{source_hash(sheet)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
