"""preregistration/claims.yaml: read, validated, keyed by claim."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import yaml

from kvcert.errors import KvcertError

CLAIMS = Path("preregistration/claims.yaml")
SCHEMA = Path(__file__).parents[1] / "schemas" / "claims.schema.yaml"
ORDER = ("C1", "C2", "C3", "C4", "C5", "C6", "C7")


def load_claims(root: Path) -> dict[str, Any]:
    """The registration as `{"common": ..., "claims": {"C1": ..., ...}}`.

    Raises
    ------
    KvcertError
        When the file is missing, not YAML, or breaks the schema; the line names the key.
    """
    return read_claims_file(Path(root) / CLAIMS)


def read_claims_file(path: Path) -> dict[str, Any]:
    """The same from a file that lies elsewhere, as in an audit bundle."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise KvcertError(f"cannot read {path} ({error}); restore it from the repository") from None
    except yaml.YAMLError as error:
        raise KvcertError(f"{path} is not valid YAML ({str(error).splitlines()[0]})") from None
    validator = jsonschema.Draft202012Validator(yaml.safe_load(SCHEMA.read_text(encoding="utf-8")))
    problem = jsonschema.exceptions.best_match(validator.iter_errors(content))
    if problem is not None:
        where = ".".join(map(str, problem.absolute_path)) or "top level"
        raise KvcertError(f"{path}: {where}: {problem.message}")
    claims = {claim["id"]: claim for claim in content["claims"]}
    if tuple(claims) != ORDER:
        raise KvcertError(f"{path}: claims: expected {', '.join(ORDER)} once each and in order")
    return content | {"claims": claims}
