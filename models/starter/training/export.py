"""Writes `models/starter` from a checkpoint: `python export.py [--name cpu]`, with the packages of requirements-export.txt.

The onnxruntime-genai model builder makes the graph (GroupQueryAttention, MatMulNBits, one table of 4 bits for tokens and for the head); the files are put where published models have them. The graph's logits are then compared with PyTorch's, and the folder is only replaced where they agree.
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from onnxruntime_genai.models.builder import create_model
from safetensors.torch import save_file

import paths
from checkpoint import read
from model import Model
from quantise import BLOCK, quantise, with_rounded

MOST_BYTES = 16 * 1024 * 1024


def write_source(model: Model, folder: Path) -> None:
    """Writes the checkpoint in the format of transformers, from which exporters start."""
    tokens = {
        t["content"]: t["id"] for t in json.loads((paths.TOKENIZER / "tokenizer.json").read_text())["added_tokens"]
    }
    end, pad = tokens["<|im_end|>"], tokens["<|endoftext|>"]
    (folder / "config.json").write_text(json.dumps(model.s.to_config([end], pad), indent=2) + "\n")
    generation = {"eos_token_id": [end, pad], "pad_token_id": pad, "do_sample": False}
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")
    save_file(
        {k: v.contiguous() for k, v in model.state_dict().items()}, folder / "model.safetensors", {"format": "pt"}
    )
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(paths.TOKENIZER / name, folder / name)


FILE = "model_q4f16.onnx"
"""File name that published models use for 4-bit weights with 16-bit activations."""
PROVIDER = "webgpu"
"""Provider for which the graph is built: for the CPU the builder has no 16-bit floats; the graph is otherwise the same."""
TOLERANCE = 0.5


def parts(model: Model) -> dict[str, torch.Tensor]:
    """Returns the weight matrices by their names in the graph."""
    found = {"lm_head": model.model.embed_tokens.weight}
    for i, layer in enumerate(model.model.layers):
        a = layer.self_attn
        found[f"model.layers.{i}.attn.qkv_proj"] = torch.cat([a.q_proj.weight, a.k_proj.weight, a.v_proj.weight])
        found[f"model.layers.{i}.attn.o_proj"] = a.o_proj.weight
        for name, matrix in layer.mlp.named_children():
            found[f"model.layers.{i}.mlp.{name}"] = matrix.weight
    return found


@torch.no_grad()
def put_numbers(graph: onnx.GraphProto, model: Model) -> None:
    """Replaces the graph's weights. The builder rounds them differently, so the graph gets exactly the numbers with which training computed
    (`quantise.py`)."""
    stored = {tensor.name: tensor for tensor in graph.initializer}
    for name, weight in parts(model).items():
        numbers, scale = quantise(weight)
        nibbles = (numbers + 8).to(torch.uint8).unflatten(1, (-1, BLOCK))
        packed = nibbles[..., 0::2] | nibbles[..., 1::2] << 4
        for part, value in ((f"weight_Q4G{BLOCK}", packed.numpy()), ("weight_scale", scale.half().numpy())):
            old = stored[f"{name}.MatMul.{part}"]
            if list(old.dims) != list(value.shape):
                raise ValueError(f"{old.name}: {list(old.dims)} in the graph, {list(value.shape)} here")
            old.CopyFrom(onnx.numpy_helper.from_array(value, old.name))
    for node in graph.node:
        # The node refers to zero points, which symmetric weights do not have.
        if node.op_type == "GatherBlockQuantized" and node.input[-1] not in stored:
            del node.input[-1]


def build(model: Model, source: Path, target: Path) -> None:
    with tempfile.TemporaryDirectory() as made, tempfile.TemporaryDirectory() as cache:
        options = {
            "int4_block_size": BLOCK,
            "int4_algo_config": "rtn",
            "int4_is_symmetric": True,
            "int4_accuracy_level": 0,
        }
        create_model("", str(source), made, "int4", PROVIDER, cache, **options)
        graph = onnx.load(f"{made}/model.onnx")
        put_numbers(graph.graph, model)
        (target / "onnx").mkdir(parents=True)
        # Saved as one file, because the weights are small enough to be in the graph.
        onnx.save(graph, str(target / "onnx" / FILE))
    for name in ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(source / name, target / name)


@torch.no_grad()
def difference(model: Model, graph: Path) -> float:
    """Returns the largest difference between the logits of PyTorch and those of the exported graph, on one random sequence."""
    n = 200
    ids = torch.randint(0, model.s.vocab_size, (1, n), generator=torch.Generator().manual_seed(1))
    mask = torch.ones(n, n, dtype=torch.bool).tril()[None, None]
    expected = model.logits(model.hidden(ids, torch.arange(n)[None], mask)).numpy()
    session = onnxruntime.InferenceSession(str(graph))
    feed = {}
    for value in session.get_inputs():
        if value.name == "input_ids":
            feed[value.name] = ids.numpy()
        elif value.name == "attention_mask":
            feed[value.name] = np.ones((1, n), np.int64)
        elif value.name == "position_ids":
            feed[value.name] = np.arange(n, dtype=np.int64)[None]
        else:
            feed[value.name] = np.zeros((1, model.s.kv_heads, 0, model.s.head_dim), np.float16)
    return float(np.abs(session.run(["logits"], feed)[0] - expected).max())


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--name", default="cpu", help="run under work/")
    p.add_argument("--to", type=Path, default=paths.MODEL)
    a = p.parse_args()
    model, state = read(a.name)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "source", Path(folder) / "target"
        source.mkdir()
        write_source(model, source)
        build(model, source, target)
        with with_rounded(model):
            gap = difference(model, target / "onnx" / FILE)
        size = sum(f.stat().st_size for f in target.rglob("*") if f.is_file())
        print(f"step {state['step']}: {size:,} bytes, logits differ by {gap:.2e} at most")
        if not gap < TOLERANCE or size > MOST_BYTES:
            raise SystemExit("not exported: the graph does not agree, or is too large")
        a.to.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(a.to / "onnx", ignore_errors=True)
        shutil.copytree(target, a.to, dirs_exist_ok=True)


if __name__ == "__main__":
    main()
