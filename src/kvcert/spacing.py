"""Evenly spaced choices: the layers of the panel. No torch: what is read from the logs uses the same rule."""

from __future__ import annotations


def panel_layers(layers: int, count: int) -> list[int]:
    """`count` evenly spaced layers, first and last included; all of them where there are fewer."""
    if count >= layers:
        return list(range(layers))
    if count == 1:
        return [layers // 2]
    return [round(i * (layers - 1) / (count - 1)) for i in range(count)]
