"""X5: the merged cache against an explicit one, the exact parts of the error, both interventions, the whole exhibit."""

import numpy as np
import pytest
import torch
from tests.exhibits.recorded import grid, shrunk

from kvcert.exhibits import x5_merge, x5_merging, x5_queries, x5_rows
from kvcert.paper import exhibits as paper
from kvcert.paper.exhibits import x5_merging as shown

D64 = torch.float64


def heads(n=40, d=6, seed=0):
    """Keys, values, logits [2, 3, n] of two heads and three steps, and which tokens are evicted."""
    g = torch.Generator().manual_seed(seed)
    keys, values, q = (torch.randn(2, size, d, generator=g, dtype=D64) for size in (n, n, 3))
    evicted = torch.rand(2, n, generator=g) < 0.7
    return q, keys, values, q @ keys.transpose(1, 2), evicted


def test_blocks_are_contiguous_and_of_nearly_equal_size():
    evicted = torch.tensor([[True] * 7 + [False] * 2 + [True] * 4])
    assert x5_merge.labels_by_position(evicted, torch.tensor([4])).tolist() == [
        [0, 0, 0, 1, 1, 1, 2, -1, -1, 2, 2, 3, 3]
    ]


def test_nearest_key_joins_every_token_to_its_own_pivot():
    _, keys, _, _, evicted = heads()
    slots = torch.tensor([5, 3])
    labels = x5_merge.labels_by_key(evicted, slots, keys)
    blocks = x5_merge.labels_by_position(evicted, slots)
    unit = torch.nn.functional.normalize(keys, dim=-1)
    for head in range(2):
        assert torch.equal(labels[head] >= 0, evicted[head])
        places = [torch.nonzero(blocks[head] == h)[:, 0] for h in range(int(slots[head]))]
        pivots = [int(place[len(place) // 2]) for place in places]
        for i in torch.nonzero(evicted[head])[:, 0].tolist():
            best = max(range(len(pivots)), key=lambda h: float(unit[head, i] @ unit[head, pivots[h]]))
            assert int(labels[head, i]) == best


def merged(weights=None, slots=(6, 9), seed=0):
    q, keys, values, logits, evicted = heads(seed=seed)
    labels = x5_merge.labels_by_position(evicted, torch.tensor(slots))
    parts = x5_merge.strata(labels, torch.ones(labels.shape) if weights is None else weights)
    return q, keys, values, logits, evicted, labels, x5_merge.Merged(values, parts)


@pytest.mark.parametrize("scored", [False, True])
def test_merged_output_is_attention_over_an_explicit_merged_cache(scored):
    weights = torch.rand(2, 40, generator=torch.Generator().manual_seed(9), dtype=D64) if scored else None
    q, keys, values, logits, evicted, labels, found = merged(weights)
    for head in range(2):
        k, v = [keys[head][~evicted[head]]], [values[head][~evicted[head]]]
        offset = [torch.zeros(len(k[0]), dtype=D64)]
        for h in range(int(labels[head].max()) + 1):
            inside = labels[head] == h
            w = torch.ones(int(inside.sum()), dtype=D64) if weights is None else weights[head][inside]
            w = w / w.sum()
            k.append(w[None] @ keys[head][inside])
            v.append(w[None] @ values[head][inside])
            offset.append(inside.sum()[None].double().log())
        explicit = (q[head] @ torch.cat(k).T + torch.cat(offset)).softmax(-1) @ torch.cat(v)
        assert torch.allclose(found.output(logits)[head], explicit, rtol=1e-12)


def test_nothing_is_lost_where_strata_hold_equals():
    _, _, values, logits, evicted, labels, _ = merged()
    alone = torch.where(evicted, evicted.long().cumsum(-1) - 1, -1)
    single = x5_merge.Merged(values, x5_merge.strata(alone, torch.ones(2, 40)))
    assert float(single.error(logits).abs().max()) < 1e-14
    # One key per stratum: the masses and the means are right whatever the values are.
    parts = x5_merge.strata(labels, torch.ones(2, 40))
    means = parts.one.transpose(1, 2) @ parts.means(logits.transpose(1, 2))
    level = torch.where(evicted[:, None], means.transpose(1, 2), logits)
    same = x5_merge.Merged(values, parts)
    assert float(same.error(level).abs().max()) < 1e-14
    assert float(same.anatomy(level)["chi"].max()) < 1e-6


def test_the_error_is_its_value_part_and_its_key_part():
    _, _, values, logits, evicted, _, found = merged()
    a = logits.exp()
    one, total = found.parts.one, a.sum(-1, keepdim=True)
    size = one.sum(-1)
    true = a @ one.transpose(1, 2)
    got = size[:, None] * (logits @ (one.transpose(1, 2) / size[:, None].clamp_min(1))).exp()
    all_got = torch.where(evicted[:, None], 0.0, a).sum(-1, keepdim=True) + got.sum(-1, keepdim=True)
    o = found.truth(logits)
    value = (true @ found.means - (a * evicted[:, None]) @ values) / total
    key = (got - true) @ found.means - (got - true).sum(-1, keepdim=True) * o
    assert torch.allclose(
        found.error(logits), total / all_got * value + key / all_got, rtol=1e-10, atol=1e-13
    )
    shown_parts = found.anatomy(logits)
    assert torch.allclose(shown_parts["value"], value.norm(dim=-1))
    assert (shown_parts["value"] <= shown_parts["bound"] * (1 + 1e-12)).all()
    # Affine in the dispersion: its slope is the value part.
    step = found.error(logits, 3.0) - found.error(logits, 2.0)
    assert torch.allclose(step.norm(dim=-1), shown_parts["value"], rtol=1e-10)


def test_dispersion_changes_values_and_no_stratum_mean():
    _, _, values, logits, evicted, _, found = merged()
    changed = values + 1.5 * found.off
    again = x5_merge.Merged(changed, found.parts)
    assert torch.allclose(again.means, found.means)
    assert torch.equal(changed[~evicted], values[~evicted])
    assert torch.allclose(again.spread, 2.5**2 * found.spread)
    assert torch.allclose(again.error(logits), found.error(logits, 2.5))


def test_the_offset_changes_the_mass_and_nothing_within_strata():
    _, _, _, logits, evicted, _, found = merged()
    before, after = found.anatomy(logits), found.anatomy(x5_queries.raised(logits, evicted, 0.5))
    assert torch.allclose(after["mass"], 0.5 * before["mass"])
    assert torch.allclose(after["value"], 0.5 * before["value"])
    assert torch.allclose(after["chi"], before["chi"])
    too_much = found.anatomy(x5_queries.raised(logits, evicted, 4.0))["mass"]
    assert torch.equal(too_much.isnan(), 4 * before["mass"] >= 1)


def test_the_turned_query_reaches_the_mass_with_a_real_query():
    _, keys, _, logits, evicted, _, found = merged()
    direction = x5_queries.along(keys, evicted, 1e-3)
    moved = x5_queries.turned(logits, evicted, direction, 0.5, 50.0)
    assert torch.allclose(found.anatomy(moved)["mass"], 0.5 * found.anatomy(logits)["mass"], rtol=1e-5)
    # Some query has exactly these logits up to a constant, which softmax does not see.
    centred = keys - keys.mean(1, keepdim=True)
    wanted = moved - moved.mean(-1, keepdim=True)
    query = torch.linalg.lstsq(centred, wanted.transpose(1, 2)).solution
    assert torch.allclose((centred @ query).transpose(1, 2), wanted, atol=1e-9)
    assert x5_queries.turned(logits, evicted, direction, 50.0, 50.0).isnan().all()
    assert x5_queries.turned(logits, evicted, 1e-9 * direction, 0.5, 50.0).isnan().all()


def test_slopes_by_hand():
    x = np.log(np.array([[1.0, 2, 4], [1, 2, 4], [1, np.nan, 4]]))
    y = np.array([[0.0, 2, 4], [5, 5, 5], [0, 1, 2]]) * np.log(2)
    found = x5_rows.slopes(x, y)
    assert found[:2] == pytest.approx([2, 0])
    assert np.isnan(found[2])


def test_the_exhibit_from_traces_to_figure(tmp_path):
    config = grid(tmp_path)
    interval = {"level": 0.95, "resamples": 50, "seed": 1}
    root = shrunk(tmp_path, "X5", examples=2, budgets=[0.25, 0.5], interval=interval)
    x5_merging.measure(config, root, lambda line: None)
    found = paper.load(tmp_path / "results", "X5")
    assert found.value("X5.affine")["outcome"] == "as expected"
    assert found.value("X5.bound")["value"] == 1
    assert found.value("X5.not_flat")["value"] == found.value("X5.mass")["low"]
    rows = found.rows()
    assert len(rows) == 2 * 4 * 2 * 2 * 2 * 3  # examples, heads, steps, settings, budgets, variants
    assert np.allclose(rows["dispersion_1"], rows["error"])
    assert np.allclose(rows["dispersion_0"], rows["key"])
    assert np.allclose(rows["offset_1_error"], rows["error"])
    # The value part follows the mass exactly where nothing but the mass moves.
    assert np.allclose(rows["slope_offset_value"].dropna(), 1, atol=1e-9)
    table = shown.table(found)
    pooled = table.frame[(table.frame["variant"] == "position") & table.frame["budget"].isna()]
    assert float(pooled["mass"].iloc[0]) == found.value("X5.mass")["value"]
    assert len(shown.draw(found).axes) == 3
