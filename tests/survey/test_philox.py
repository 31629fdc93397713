"""Philox against the published known-answer vectors of Random123 (Salmon et al. 2011)."""

import pytest
import torch

from kvcert.survey.philox import philox4x32, uniforms

VECTORS = [
    ((0, 0), (0, 0, 0, 0), 0x6627E8D5),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF,) * 4, 0x408F276D),
    ((0xA4093822, 0x299F31D0), (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), 0xD16CFE09),
]


@pytest.mark.parametrize(("key", "counter", "first"), VECTORS)
def test_known_answers(key, counter, first):
    assert int(philox4x32(key, counter)) == first


def test_a_uniform_depends_on_its_counter_alone():
    positions = torch.arange(300)
    whole = uniforms(7, 123456, positions, 5, 3, draw=1)
    shuffled = positions[torch.randperm(300, generator=torch.Generator().manual_seed(0))]
    assert torch.equal(uniforms(7, 123456, shuffled, 5, 3, draw=1), whole[..., shuffled])
    assert torch.equal(uniforms(7, 123456, positions[10:20], 2, 1, draw=1), whole[:2, :1, 10:20])


def test_seed_example_draw_and_stage_each_give_another_draw():
    positions = torch.arange(64)
    base = uniforms(7, 1, positions, 2, 2, draw=0)
    others = [
        uniforms(8, 1, positions, 2, 2, draw=0),
        uniforms(7 + 2**32, 1, positions, 2, 2, draw=0),
        uniforms(7, 2, positions, 2, 2, draw=0),
        uniforms(7, 1, positions, 2, 2, draw=1),
        uniforms(7, 1, positions, 2, 2, draw=0, stage=1),
    ]
    assert all((base != other).float().mean() > 0.99 for other in others)


def test_uniform_on_32_bits():
    u = uniforms(3, 9, torch.arange(4096), 8, 4, draw=0).double() / 2**32
    assert abs(float(u.mean()) - 0.5) < 4 * (1 / 12 / u.numel()) ** 0.5
    assert float(u.min()) >= 0
    assert float(u.max()) < 1
