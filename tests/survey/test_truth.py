"""The shadow's attention against an obvious loop in float64."""

import torch

from kvcert.survey.truth import shadow_attention


def test_shadow_attention_against_a_loop():
    g = torch.Generator().manual_seed(0)
    rows, heads, groups, steps, n, own, d = 3, 4, 2, 3, 11, 5, 8

    def rand(*shape):
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    q, k, v = rand(rows, heads, steps, d), rand(groups, n, d), rand(groups, n, d)
    own_k, own_v = rand(rows, groups, own, d), rand(rows, groups, own, d)
    log_pi = torch.where(torch.rand(rows, groups, n, generator=g) < 0.4, -rand(rows, groups, n).abs(), 0.0)
    kept = torch.rand(rows, groups, n, generator=g) < 0.5
    found = shadow_attention(q, k, v, own_k, own_v, log_pi, kept, 0.3)
    for r in range(rows):
        for h in range(heads):
            group = h // (heads // groups)
            for t in range(steps):
                seen = own - steps + t + 1
                keys = torch.cat([k[group], own_k[r, group, :seen]])
                values = torch.cat([v[group], own_v[r, group, :seen]])
                a = (keys @ q[r, h, t] * 0.3).softmax(-1)
                assert torch.allclose(found.out[r, h, t], a @ values)
                assert torch.allclose(found.ess[r, h, t], 1 / a.square().sum())
                share = a[:n] / log_pi[r, group].exp()
                tail = log_pi[r, group] < 0
                assert torch.allclose(found.r_max[r, h, t], torch.where(tail, share, 0.0).max())
                assert torch.allclose(
                    found.r_kept[r, h, t], torch.where(tail & kept[r, group], share, 0.0).max()
                )
