"""X1 on a tiny model: what must be equal to the bit is, what must move does, and the hash is not blind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from roots import outcomes

from kvcert.errors import KvcertError
from kvcert.exhibits import x1_unidentifiability as x1
from kvcert.exhibits.alterations import BOUNDED, Alteration, alter, rotation, unbounded
from kvcert.exhibits.clustered import median
from kvcert.exhibits.material import readings
from kvcert.exhibits.witness import Digest
from kvcert.paper.exhibits import load, publish


@pytest.fixture(scope="module")
def found(grid: dict[str, Any], root: Path) -> dict[str, Any]:
    return x1.measure(grid, root, lambda line: None)


def test_the_theorem_holds_on_a_tiny_model(found: dict[str, Any]) -> None:
    assert set(outcomes(found).values()) == {"as expected"}
    assert found["registration"]["status"] == "not registered"


def test_what_is_hashed_moves_when_it_must(found: dict[str, Any], grid: dict[str, Any]) -> None:
    one = load(Path(grid["run"]["results"]), "X1")
    runs, heads = one.rows(), one.rows("heads")
    blind = runs[(runs["design"] == "topk") & ~runs["value_aware"]]
    assert blind["scores_same"].all()
    assert blind["selection_same"].all()
    # Another example, setting or score is another hash: equal hashes are no accident of an empty digest.
    assert blind.groupby(["task", "example", "setting", "scorer"])["sha256"].first().is_unique
    aware = runs[runs["value_aware"] & (runs["alteration"] == "scale")]
    assert not aware["scores_same"].any()
    top = heads[(heads["design"] == "topk") & (heads["alteration"] == "scale")]
    assert top.groupby("factor")["error_factor"].median().is_monotonic_increasing


def test_table_and_figure(found: dict[str, Any], grid: dict[str, Any], tmp_path: Path) -> None:
    paths = publish(Path(grid["run"]["results"]), tmp_path, "X1")
    assert {path.suffix for path in paths} == {".csv", ".md", ".tex", ".pdf", ".png"}
    table = pd.read_csv(next(path for path in paths if path.suffix == ".csv"))
    assert len(table) == 2 * 10 + 4 + 7 + 3
    assert "was not registered" in next(path for path in paths if path.suffix == ".md").read_text()


@pytest.mark.parametrize("how", [*unbounded([10.0]), *BOUNDED], ids=lambda how: how.kind)
def test_alterations_touch_the_chosen_alone(how: Alteration) -> None:
    values = torch.randn(2, 12, 8, generator=torch.Generator().manual_seed(1))
    chosen = torch.zeros(2, 12, dtype=torch.bool)
    chosen[:, 3:9] = True
    changed = alter(values, chosen, how, ("key", 0))
    assert torch.equal(changed[~chosen], values[~chosen])
    assert not (changed == values).all(-1)[chosen].any()
    norms = [x[chosen].norm(dim=-1) for x in (values, changed)]
    if how.kind == "sign":
        assert torch.equal(*norms)
    if how.kind == "rotation":
        assert torch.allclose(*norms)
    if how.kind == "permutation":
        assert torch.equal(norms[0].sort().values, norms[1].sort().values)
    if how.kind == "scale":
        assert torch.allclose(10 * norms[0], norms[1])


def test_rotation_is_orthogonal_and_fixed() -> None:
    q = rotation(16)
    assert torch.allclose(q @ q.T, torch.eye(16), atol=1e-5)
    assert torch.equal(q, rotation(16))


def test_the_digest_sees_one_bit_shape_and_type() -> None:
    def text(x: torch.Tensor) -> str:
        digest = Digest()
        digest.add(x, None)
        return digest.text()

    x = torch.zeros(4)
    others = [torch.tensor([0.0, 0.0, -0.0, 0.0]), torch.zeros(2, 2), torch.zeros(4, dtype=torch.int32)]
    assert len({text(x), *map(text, others)}) == 4
    assert text(x) == text(x.clone())


def test_weighted_median() -> None:
    values = torch.tensor([3.0, 1.0, 2.0]).numpy()
    weights = torch.tensor([[1.0, 1.0, 1.0], [5.0, 1.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]).numpy()
    found = median(values)(weights)[:, 0]
    assert found[:3].tolist() == [2.0, 3.0, 1.0]
    assert np.isnan(found[3])


def test_a_score_that_needs_every_query_is_refused(grid: dict[str, Any]) -> None:
    with torch.inference_mode():
        reading = next(readings(grid, 1, 1))
    with pytest.raises(KvcertError, match="scorer h2o needs all of them"):
        reading.scores("aware", "h2o")
