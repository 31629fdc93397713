"""The schema describes every key, gives every optional one a default, and config/README.md names them all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kvcert.config import SCHEMA, schema

ROOT = Path(__file__).resolve().parents[2]
#: Optional keys whose absence means something by itself.
NO_DEFAULT = {
    "study.rows[].scorer",
    "study.heads_every",
    "study.tasks[].max_new_tokens",
    *(
        f"study.models[].{key}"
        for key in ("wheel", "wheel_sha256", "file", "hub", "revision", "path", "ignore_generation")
    ),
}


def keys(scheme: dict[str, Any], name: str = "") -> Iterator[tuple[str, str, dict[str, Any], bool]]:
    """Every key of the schema: dotted path, last name, its schema, whether it is required."""
    if "$ref" in scheme:
        scheme = schema()["$defs"][scheme["$ref"].rsplit("/", 1)[1]]
    for key, sub in scheme.get("properties", {}).items():
        path = f"{name}.{key}".lstrip(".")
        yield path, key, sub, key in scheme.get("required", [])
        yield from keys(sub, path)
        yield from keys(sub.get("items", {}), f"{path}[]")


ALL = list(keys(schema()))


def test_it_is_a_valid_schema_and_one_copy() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    assert SCHEMA.resolve() == ROOT / "workflow/schemas/config.schema.yaml"
    assert len(ALL) > 40


@pytest.mark.parametrize(("path", "key", "sub", "required"), ALL, ids=[entry[0] for entry in ALL])
def test_every_key_is_described_and_has_a_default(
    path: str, key: str, sub: dict[str, Any], required: bool
) -> None:
    assert sub["description"].endswith(".")
    if path in NO_DEFAULT:
        assert "default" not in sub
    else:
        assert required != ("default" in sub), "required keys have no default, all others have one"
    if "default" in sub and "items" not in sub:
        jsonschema.Draft202012Validator(sub).validate(sub["default"])


def test_every_object_refuses_unknown_keys() -> None:
    def objects(scheme: Any) -> Iterator[dict[str, Any]]:
        if isinstance(scheme, dict):
            if "properties" in scheme and "type" in scheme:
                yield scheme
            for value in scheme.values():
                yield from objects(value)
        elif isinstance(scheme, list):
            for value in scheme:
                yield from objects(value)

    found = list(objects(schema()))
    assert len(found) >= 6
    assert all(scheme["additionalProperties"] is False for scheme in found)


def test_the_readme_names_every_key() -> None:
    text = (ROOT / "config/README.md").read_text()
    missing = [path for path, key, _, _ in ALL if f"`{key}`" not in text]
    assert not missing
