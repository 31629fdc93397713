"""One door, clear refusals, and a fallback that says so once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from problems import problem

from kvcert.errors import KvcertError
from kvcert.kernels import build, decode, dispatch, resolve_backend, twin

PAGE = torch.zeros(1, 1, 1, dtype=torch.int32)


@pytest.fixture
def fresh() -> Iterator[None]:
    """Backends are probed once per process: forget what was found, before and after."""
    for cached in (dispatch.missing, dispatch.resolve_backend, twin.library):
        cached.cache_clear()
    yield
    for cached in (dispatch.missing, dispatch.resolve_backend, twin.library):
        cached.cache_clear()


def test_names() -> None:
    assert resolve_backend("auto", "cpu") == "cpu"
    assert resolve_backend("torch", "cpu") == "torch"
    with pytest.raises(KvcertError, match="unknown backend 'gpu'; choose one of auto, cuda, cpu, torch"):
        resolve_backend("gpu", "cpu")
    with pytest.raises(KvcertError, match="cuda cannot work on device cpu"):
        resolve_backend("cuda", "cpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_missing_gpu_is_told() -> None:
    with pytest.raises(KvcertError, match="needs a CUDA build of torch and a GPU"):
        resolve_backend("cuda", "cuda")


def test_no_compiler(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/nowhere/g++")
    with pytest.raises(KvcertError, match=r"needs g\+\+"):
        resolve_backend("cpu", "cpu")
    with pytest.warns(RuntimeWarning, match="falls back to torch") as told:
        assert [resolve_backend("auto", "cpu") for _ in range(3)] == ["torch"] * 3
    assert len(told) == 1


def test_failed_compilation_is_one_line(fresh: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "cxx"
    fake.write_text(
        "#!/bin/sh\n[ \"$1\" = --version ] && { echo fake 1; exit 0; }\necho 'x.cpp:1: error: no' >&2; exit 1\n"
    )
    fake.chmod(0o755)
    monkeypatch.setenv("CXX", str(fake))
    monkeypatch.setenv("KVCERT_KERNEL_CACHE", str(tmp_path / "cache"))
    with pytest.raises(KvcertError, match="error: no; choose backend: torch"):
        build.build_twin()
    assert not list((tmp_path / "cache").glob("*.so"))


def test_build_key_follows_source_compiler_and_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    here = build.build_twin()
    assert build.build_twin() == here
    monkeypatch.setattr(build, "FLAGS", (*build.FLAGS, "-DOTHER"))
    monkeypatch.setattr(build, "_compile", lambda found, target: target.write_bytes(b""))
    monkeypatch.setattr(build, "cache_dir", lambda: here.parent / "key-test")
    other = build.build_twin()
    assert other.name != here.name
    monkeypatch.setattr(build, "processor", lambda: "another")
    assert build.build_twin().name not in (here.name, other.name)
    for left in other.parent.iterdir():
        left.unlink()
    other.parent.rmdir()


def test_two_processes_build_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    fake = tmp_path / "cxx"  # records each compilation, and takes its time
    fake.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && { echo fake 2; exit 0; }\n'
        f'echo once >> {log}; sleep 0.5\nwhile [ "$1" != -o ]; do shift; done; echo lib > "$2"\n'
    )
    fake.chmod(0o755)
    code = "from kvcert.kernels.build import build_twin; print(build_twin().read_text())"
    env = {
        "CXX": str(fake),
        "KVCERT_KERNEL_CACHE": str(tmp_path / "cache"),
        "PYTHONPATH": ":".join(sys.path),
        "PATH": "/usr/bin:/bin",
    }
    both = [
        subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert [p.communicate(timeout=60)[0].strip() for p in both] == ["lib", "lib"]
    assert log.read_text() == "once\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"end": 1000}, "end = 1000 must be at least T"),
        ({"end": 0}, "end = 0 must be at least T"),
        ({"log_pi": torch.zeros(1, 1, 23, dtype=torch.float64)}, "log_pi must be float32"),
        ({"begin": torch.zeros(1, 1, dtype=torch.int64)}, "begin must be int32"),
        ({"centre": torch.zeros(1, 1, 8)}, "centre must be float32"),
        ({"q": torch.zeros(1, 2, 1, 32)}, "does not match"),
        ({"v": torch.zeros(1, 1, 5, 16)}, "of equal shape"),
        ({"pages": PAGE}, "must be a power of two"),
        ({"pages": PAGE, "k": torch.zeros(4, 1, 16, 16), "log_pi": torch.zeros(4, 1, 16)}, "P \\* 16 >= end"),
    ],
)  # fmt: skip
def test_refusals_name_the_argument(change: dict[str, object], message: str) -> None:
    p = problem(1, 1, 2, 1, 16, 20)
    with pytest.raises(KvcertError, match=message):
        decode(**(p | change))


def test_head_dimension_without_a_kernel_falls_to_torch() -> None:
    p = problem(1, 1, 2, 1, 12, 20)
    with pytest.raises(KvcertError, match="D % 8 == 0"):
        decode(**p, backend="cpu")
    assert torch.equal(decode(**p).out, decode(**p, backend="torch").out)
