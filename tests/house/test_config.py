"""The configuration: defaults, overlays, and one clear line for everything that is wrong with it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from kvcert import config
from kvcert.errors import KvcertError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def default() -> dict[str, Any]:
    return config.read_yaml(ROOT / "config/config.yaml")


def refused(candidate: dict[str, Any]) -> str:
    with pytest.raises(KvcertError) as caught:
        config.resolve(candidate)
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith("config: ")
    return line


def test_resolving_twice_changes_nothing_and_leaves_the_argument_alone(default: dict[str, Any]) -> None:
    before = copy.deepcopy(default)
    resolved = config.resolve(default)
    assert default == before
    assert config.resolve(resolved) == resolved


def test_every_default_is_filled() -> None:
    minimal = {
        "study": {
            "models": [{"name": "tiny", "path": "/models/tiny"}],
            "tasks": [{"name": "niah", "length": 768, "examples": 2}],
            "rows": [{"policy": "full"}, {"policy": "poisson", "budgets": [0.25]}],
        }
    }
    resolved = config.resolve(minimal)
    assert resolved["study"]["constants"]["epsilon"] == 1e-6
    assert resolved["study"]["tasks"][0] == {
        "name": "niah", "length": 768, "examples": 2, "fail_below": 0.5, "params": {}
    }  # fmt: skip
    assert resolved["study"]["rows"][0]["budgets"] == [1.0]
    assert resolved["study"]["models"][0]["dtype"] == "float32"
    assert resolved["run"]["results"] == "results"


def test_the_default_grid_is_the_registered_one() -> None:
    study = config.load(ROOT / "config/config.yaml")["study"]
    registered = {
        "n_sink": 4, "n_recent": 32, "window": 32, "pooling": 7, "rho": 0.5, "epsilon": 1e-6, "delta": 0.05,
        "floor": 0.05, "m_min": 4, "panel_layers": 6, "signal_steps": 6,
    }  # fmt: skip
    assert study["constants"] == registered
    assert config.schema()["properties"]["study"]["properties"]["constants"]["default"] == {}


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("study.tasks.2.lenght", 5, "study.tasks[2].lenght: unknown key (did you mean length?)"),
        ("study.rows.1.budgets", [0], "study.rows[1].budgets[0]: 0 is less than or equal to the minimum of 0"),
        ("study.rows.1.budgets", [0.5, 1.5], "study.rows[1].budgets[1]: 1.5 is greater than the maximum of 1"),
        ("study.rows.1.budgets", [0.04], "study.rows[1].budgets[0]: 0.04 of 768 tokens"),
        ("study.rows.1.budgets", [float("nan")], "study.rows[1].budgets[0]: nan is not a finite number"),
        ("study.rows.1.budgets", [], "study.rows[1].budgets: [] should be non-empty"),
        ("study.rows.0.budgets", [0.5], "study.rows[0].budgets: full keeps everything"),
        ("study.rows.1.draws", 2, "study.rows[1].draws: topk has no randomness"),
        ("study.rows.0.policy", "topk", "study.rows: exactly one row has the policy full, found 0"),
        ("study.rows.3", {"policy": "poisson", "budgets": [0.25]}, "study.rows[3]: poisson at budget 0.25 is listed twice"),
        ("study.constants.epsilon", "1e-6", "study.constants.epsilon: '1e-6' is not of type 'number'; write the number"),
        ("study.constants.pooling", 6, "study.constants.pooling: 6 is even"),
        ("study.constants.delta", 1, "study.constants.delta: 1 is greater than or equal to the maximum of 1"),
        ("study.settings", ["offline"], "study.settings[0]: 'offline' is not one of"),
        ("study.settings", [], "study.settings: [] should be non-empty"),
        ("study.forced", "no", "study.forced: 'no' is not of type 'boolean'"),
        ("study.models.0.wheel_sha256", "abc", "study.models[0].wheel_sha256: 'abc' does not match"),
        ("study.models.0.hub", "owner/name", "study.models[0]: give exactly one of wheel, hub (with revision) and path"),
        ("study.models.0.file", "../x.gguf", "study.models[0].file: ../x.gguf is not a path inside the wheel"),
        ("study.models.0.name", "a/b", "study.models[0].name: 'a/b' does not match"),
        ("study.tasks.1.name", "squad_long", "study.tasks[1]: squad_long at 768 tokens is listed twice"),
        ("study.tasks.1.examples", 0, "study.tasks[1].examples: 0 is less than the minimum of 1"),
        ("study.tasks", [], "study.tasks: [] should be non-empty"),
        ("run.results", "../elsewhere", "run.results: ../elsewhere leaves the project with '..'"),
        ("run.figures", "a/../../b", "run.figures: a/../../b leaves the project"),
        ("run.cache", "~/cache", "run.cache: ~/cache is not expanded"),
        ("run.results", ".", "run.results: . is no folder of its own"),
        ("run.results", "r{x}", "run.results: 'r{x}' holds a character"),
        ("run.threads", 0, "run.threads: 0 is less than the minimum of 1"),
        ("run.device", "gpu", "run.device: 'gpu' does not match"),
        ("run", 7, "run: 7 is not of type 'object'"),
        ("extra", {}, "extra: unknown key (known: study, run)"),
    ],
)  # fmt: skip
def test_wrong_values_name_their_key(default: dict[str, Any], path: str, value: Any, expected: str) -> None:
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    place: Any = default
    for part in parents:
        place = place[part]
    place[last] = value
    assert expected in refused(default)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("study", "study: missing"),
        ("study.tasks.2.length", "study.tasks[2].length: missing (Target length of the prompt in tokens)"),
        ("study.rows.1.policy", "study.rows[1].policy: missing"),
        ("study.models.0.wheel_sha256", "study.models[0].wheel_sha256: missing (needed beside wheel)"),
    ],
)
def test_missing_keys_are_named(default: dict[str, Any], path: str, expected: str) -> None:
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    place: Any = default
    for part in parents:
        place = place[part]
    del place[last]
    assert expected in refused(default)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("tasks", [{"name": "sudoku", "length": 768, "examples": 1}], "study.tasks[0].name: nothing is called 'sudoku'"),
        ("rows", [{"policy": "full"}, {"policy": "luck", "budgets": [0.5]}], "study.rows[1].policy: nothing is called"),
        ("scorer", "horoscope", "study.scorer: nothing is called 'horoscope'; known: h2o"),
    ],
)  # fmt: skip
def test_unknown_names_are_refused_when_a_file_is_read(
    tmp_path: Path, key: str, value: Any, expected: str
) -> None:
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text(config.yaml.safe_dump({"study": {key: value}}))
    with pytest.raises(KvcertError) as caught:
        config.load(ROOT / "config/config.yaml", overlay)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("study: [", "line 1: not valid YAML"),
        ("study:\n  seed: 1\n  seed: 2\n", "line 3: not valid YAML (key 'seed' is given twice)"),
        ("- a\n", "expected keys and values at the top level, found a list"),
        ("", "expected keys and values at the top level, found nothing"),
        ("study: !!python/object/apply:os.getcwd []\n", "not valid YAML"),
    ],
)
def test_unreadable_files_are_named(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "grid.yaml"
    path.write_text(text)
    with pytest.raises(KvcertError) as caught:
        config.load(path)
    assert str(path) in str(caught.value)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(KvcertError, match=r"cannot read .*absent\.yaml"):
        config.load(tmp_path / "absent.yaml")


def test_overlays_merge_mappings_and_replace_lists() -> None:
    merged = config.merge({"a": {"x": 1, "l": [1, 2]}, "b": 2}, {"a": {"l": [3]}, "c": 4})
    assert merged == {"a": {"x": 1, "l": [3]}, "b": 2, "c": 4}


def test_folders_may_be_given_at_the_top_level_or_as_absolute_paths(default: dict[str, Any]) -> None:
    resolved = config.resolve(default | {"results": "/data/out", "figures": "plots"})
    assert (resolved["run"]["results"], resolved["run"]["figures"]) == ("/data/out", "plots")


def test_the_smoke_grid_is_the_default_grid_in_small() -> None:
    default = config.load(ROOT / "config/config.yaml")
    smoke = config.load(ROOT / "config/config.yaml", ROOT / "config/smoke.yaml")
    assert [task["name"] for task in smoke["study"]["tasks"]] == [
        task["name"] for task in default["study"]["tasks"]
    ]
    assert smoke["study"]["rows"] == default["study"]["rows"]
    assert smoke["run"]["cache"] == default["run"]["cache"]
    assert not {smoke["run"][key] for key in ("results", "figures")} & {
        default["run"][key] for key in ("results", "figures")
    }
