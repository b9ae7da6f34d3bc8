"""Writes a run's first checkpoint from the released weights: `python released.py config/further.json`, with the packages of
requirements-export.txt.

Used instead of `prune.py` for training that continues from the last release. The weights are the released 4-bit ones, so nothing of what is served is
lost; the state of the optimizers is.
"""

import json
import shutil
import sys
from pathlib import Path

import onnx
import torch

import paths
from checkpoint import write_first
from export import FILE, parts
from model import Model, Shape
from quantise import BLOCK


def matrix(numbers: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Returns weights [rows, columns] from `numbers` [rows, blocks, BLOCK / 2], two in a byte, 0 to 15 for -8 to 7, and `scale` [rows,
    blocks]. The inverse of `put_numbers` in `export.py`."""
    pairs = torch.stack((numbers & 15, numbers >> 4), -1).flatten(2)
    return ((pairs.float() - 8) * scale.float()[..., None]).flatten(1)


@torch.no_grad()
def read(shape: Shape) -> Model:
    model = Model(shape)
    graph = onnx.load(str(paths.MODEL / "onnx" / FILE)).graph
    stored = {t.name: torch.from_numpy(onnx.numpy_helper.to_array(t).copy()) for t in graph.initializer}
    for name, whole in parts(model).items():
        found = matrix(stored[f"{name}.MatMul.weight_Q4G{BLOCK}"], stored[f"{name}.MatMul.weight_scale"])
        if found.shape != whole.shape:
            raise ValueError(
                f"{name}: {list(found.shape)} in the released graph, {list(whole.shape)} in the configuration"
            )
        stored[name] = found
    model.model.embed_tokens.weight.copy_(stored["lm_head"])
    model.model.norm.weight.copy_(stored[f"model.layers.{shape.layers}.final_norm_layernorm.weight"])
    for i, layer in enumerate(model.model.layers):
        begin, a = f"model.layers.{i}.", layer.self_attn
        matrices = (a.q_proj, a.k_proj, a.v_proj)
        rows = stored[begin + "attn.qkv_proj"].split([m.weight.shape[0] for m in matrices])
        for m, values in zip(matrices, rows):
            m.weight.copy_(values)
        a.o_proj.weight.copy_(stored[begin + "attn.o_proj"])
        for name, m in layer.mlp.named_children():
            m.weight.copy_(stored[f"{begin}mlp.{name}"])
        for name in ("input_layernorm", "post_attention_layernorm"):
            getattr(layer, name).weight.copy_(stored[f"{begin}{name}.weight"])
    return model


def main(config: str):
    paths.TOKENIZER.mkdir(parents=True, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(paths.MODEL / name, paths.TOKENIZER / name)
    size = json.loads((paths.MODEL / "config.json").read_text(encoding="utf-8"))["vocab_size"]
    shape = Shape(vocab_size=size, **json.loads(Path(config).read_text(encoding="utf-8"))["shape"])
    write_first(config, shape, read(shape).state_dict())


if __name__ == "__main__":
    main(*sys.argv[1:])
