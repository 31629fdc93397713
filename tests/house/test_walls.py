"""The walls between the rooms: who may import whom, read from the source and tried in a fresh interpreter."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "kvcert"
HEAVY = {"torch", "transformers", "tokenizers", "safetensors", "snakemake", "kvpress", "lm_eval"}
LIGHT_ROOMS = ["claims", "paper", "registry", "logs", "audit", "crate", "report"]
LIGHT_FILES = [
    "config.py",
    "config_checks.py",
    "document.py",
    "grid.py",
    "files.py",
    "errors.py",
    "estimate.py",
    "pace.py",
    "presses.py",
    "sizing.py",
    "turns.py",
    "unlock.py",
    "worklog.py",
]


def files(*rooms: str) -> list[Path]:
    """Python files of the rooms (folders or single files); rooms that do not exist yet have none."""
    found: list[Path] = []
    for room in rooms:
        place = PACKAGE / room
        found += sorted(place.rglob("*.py")) if place.is_dir() else [place] if place.is_file() else []
    return found


def imports(path: Path) -> set[str]:
    """Dotted names that a file imports, anywhere in it; relative imports are made absolute."""
    names: set[str] = set()
    package = ["kvcert", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            names |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return names


def rooms(path: Path) -> set[str]:
    """First parts below kvcert of a file's imports: `kvcert.survey.hajek` gives `survey`."""
    return {name.split(".")[1] for name in imports(path) if name.startswith("kvcert.")}


def outside(path: Path) -> set[str]:
    """Top-level packages that a file imports from outside, the standard library left out."""
    return {name.split(".")[0] for name in imports(path)} - set(sys.stdlib_module_names) - {"kvcert"}


def test_the_reader_of_imports_sees_all_forms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    (tmp_path / "claims").mkdir()
    file = tmp_path / "claims" / "x.py"
    file.write_text(
        "import torch.nn\nfrom ..survey import hajek\nfrom . import auc\ndef f():\n    from kvcert import cli\n"
    )
    assert outside(file) == {"torch"}
    assert rooms(file) == {"survey", "claims", "cli"}


@pytest.mark.parametrize("path", files(*LIGHT_ROOMS, *LIGHT_FILES), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_what_reads_logs_needs_no_torch(path: Path) -> None:
    assert not outside(path) & HEAVY
    assert not rooms(path) & {
        "survey",
        "kernels",
        "cache",
        "attention",
        "models",
        "runner",
        "policies",
        "scorers",
    }


@pytest.mark.parametrize("path", files("survey"), ids=lambda p: p.name)
def test_survey_imports_only_torch(path: Path) -> None:
    assert outside(path) <= {"torch"}
    assert rooms(path) <= {"survey"}


@pytest.mark.parametrize("path", files("kernels"), ids=lambda p: p.name)
def test_kernels_import_nothing_above_survey(path: Path) -> None:
    assert rooms(path) <= {"survey", "kernels", "errors", "files"}
    assert not outside(path) & {"transformers", "snakemake"}


def test_audit_shares_no_code_with_the_claims() -> None:
    assert len(files("audit")) > 15
    assert not [path for path in files("audit") if "claims" in rooms(path)]


def test_nothing_imports_the_command_line() -> None:
    checked = [path for path in files(".") if path.name != "cli.py"]
    assert len(checked) > 20
    assert not [path for path in checked if "cli" in rooms(path)]


def test_the_package_does_not_know_snakemake() -> None:
    assert not [path for path in files(".") if "snakemake" in outside(path)]


def test_no_file_reads_code_from_data() -> None:
    banned = {"pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib"}
    assert not [path for path in files(".") if outside(path) & banned or imports(path) & banned]


def test_importing_them_brings_no_torch() -> None:
    modules = [
        ".".join(["kvcert", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")
        for path in files(*LIGHT_ROOMS, *LIGHT_FILES)
    ]
    assert "kvcert.grid" in modules
    code = (
        "import importlib, sys\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        f"heavy = sorted(set(sys.modules) & {HEAVY!r})\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
