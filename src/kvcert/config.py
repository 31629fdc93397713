"""The configuration: read, merge overlays, fill defaults, refuse what is wrong in one line that names the key."""

from __future__ import annotations

import copy
import difflib
import functools
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from kvcert.config_checks import check_known, check_together
from kvcert.errors import KvcertError

Config = dict[str, Any]

#: The schema lies in workflow/schemas; `kvcert/schemas` is a link to it, hence found in a checkout and in a wheel.
SCHEMA = Path(__file__).parent / "schemas" / "config.schema.yaml"
#: Keys of `run` that may stand at the top level, so that `snakemake --config results=DIR` works.
SHORT = ("results", "figures", "cache", "longbench")


class _Loader(yaml.SafeLoader):
    """Safe YAML that refuses a key given twice (PyYAML would silently keep the last)."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} is given twice", key_node.start_mark
                )
            seen.add(key if isinstance(key, Hashable) else repr(key))
        return super().construct_mapping(node, deep)


def read_yaml(path: Path | str) -> dict[str, Any]:
    """A YAML file whose top level is a mapping; anything else is a `KvcertError` with file and line."""
    try:
        content = yaml.load(Path(path).read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506 - a SafeLoader
    except OSError as error:
        raise KvcertError(f"config: cannot read {path} ({error.strerror or error})") from None
    except UnicodeDecodeError:
        raise KvcertError(f"config: {path} is not UTF-8 text") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        what = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise KvcertError(f"config: {path}{where}: not valid YAML ({what})") from None
    if not isinstance(content, dict):
        raise KvcertError(
            f"config: {path}: expected keys and values at the top level, found {_kind(content)}"
        )
    return content


def merge(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    """`overlay` over `base`: mappings merge key by key, everything else (lists too) is replaced."""
    merged = dict(base)
    for key, value in overlay.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def load(*paths: Path | str) -> Config:
    """Read the files, merge them in order (the last wins), resolve the result, refuse names that nothing answers to."""
    merged: dict[str, Any] = {}
    for path in paths:
        merged = merge(merged, read_yaml(path))
    resolved = resolve(merged)
    check_known(resolved)
    return resolved


def resolve(config: Mapping[str, Any]) -> Config:
    """Validate a configuration and fill every default.

    Parameters
    ----------
    config : mapping
        `study` and `run` as in config/config.yaml; `results`, `figures`, `cache` and `longbench` may also stand at the
        top level.

    Returns
    -------
    dict
        A deep copy with every default of the schema filled in. Resolving twice changes nothing.

    Raises
    ------
    KvcertError
        One line that names the offending key, e.g. `config: study.tasks[2].length: ...`.
    """
    resolved = copy.deepcopy(dict(config))
    short = {key: resolved.pop(key) for key in SHORT if key in resolved}
    if short and isinstance(resolved.setdefault("run", {}), dict):
        resolved["run"] |= short
    _validate(resolved)
    _fill(resolved, schema())
    check_together(resolved)
    return resolved


@functools.cache
def schema() -> dict[str, Any]:
    """The JSON Schema of the configuration."""
    return yaml.safe_load(SCHEMA.read_text(encoding="utf-8"))


def _validate(config: dict[str, Any]) -> None:
    errors = list(jsonschema.Draft202012Validator(schema()).iter_errors(config))
    if errors:
        # The shallowest problem first: deeper ones often follow from it.
        raise KvcertError(
            _explain(min(errors, key=lambda error: (len(error.absolute_path), str(error.path))))
        )


def _explain(error: jsonschema.ValidationError) -> str:
    path, value = list(error.absolute_path), error.instance
    if error.validator == "additionalProperties":
        known = list(error.schema["properties"])
        key = next(key for key in value if key not in known)
        near = difflib.get_close_matches(str(key), known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
        return f"config: {_dotted([*path, key])}: unknown key ({hint})"
    if error.validator == "required":
        key = next(key for key in error.validator_value if key not in value)
        return f"config: {_dotted([*path, key])}: missing ({_describe(error.schema, key)})"
    if error.validator == "dependentRequired":
        key = next(
            k for k, needs in error.validator_value.items() if k in value and not set(needs) <= set(value)
        )
        lacking = next(need for need in error.validator_value[key] if need not in value)
        return f"config: {_dotted([*path, lacking])}: missing (needed beside {key})"
    if error.validator == "oneOf" and "name" in error.schema.get("required", []):
        return f"config: {_dotted(path)}: give exactly one of wheel, hub (with revision) and path"
    if error.validator == "not":
        return f"config: {_dotted(path)}: {value!r} is even; an odd number is needed"
    reason = error.message
    if (
        error.validator == "type"
        and isinstance(value, str)
        and error.validator_value in ("number", "integer")
    ):
        reason += "; write the number without quotes, small ones as 1.0e-6"
    return (
        f"config: {_dotted(path)}: {reason} ({error.schema['description']})"
        if "description" in error.schema
        else (f"config: {_dotted(path)}: {reason}")
    )


def _describe(scheme: Mapping[str, Any], key: str) -> str:
    return str(scheme.get("properties", {}).get(key, {}).get("description", "required")).rstrip(".")


def _dotted(path: list[Any]) -> str:
    """`["study", "tasks", 2, "length"]` as `study.tasks[2].length`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.lstrip(".") or "top level"


def _kind(value: Any) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"


def _fill(value: Any, scheme: Mapping[str, Any]) -> None:
    """Fill the schema's defaults into mappings, in place and recursively."""
    if "$ref" in scheme:
        scheme = schema()["$defs"][scheme["$ref"].rsplit("/", 1)[1]]
    if isinstance(value, dict):
        for key, sub in scheme.get("properties", {}).items():
            if key not in value and "default" in sub:
                value[key] = copy.deepcopy(sub["default"])
            if key in value:
                _fill(value[key], sub)
    elif isinstance(value, list):
        for item in value:
            _fill(item, scheme.get("items", {}))
