"""Writes `models/starter` from a checkpoint: `python export.py [--name cpu]`, with the packages of requirements-export.txt.

The onnxruntime-genai model builder makes the graph (GroupQueryAttention); the files are put where published models have them. The graph's logits are then compared with PyTorch's, and the folder is only replaced where they agree.
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

MOST_BYTES = 16 * 1024 * 1024


def write_source(model: Model, folder: Path) -> None:
    """The checkpoint as transformers reads it: what exporters start from."""
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


FILES = {"fp32": "model.onnx", "fp16": "model_fp16.onnx"}
"""Names that published models have for them."""
PROVIDER = {"fp32": "cpu", "fp16": "webgpu"}
"""For the CPU the builder has no GroupQueryAttention in half precision; the graph is the same."""
TOLERANCE = {"fp32": 1e-2, "fp16": 0.5}


def build(source: Path, target: Path, precision: str) -> None:
    with tempfile.TemporaryDirectory() as made, tempfile.TemporaryDirectory() as cache:
        create_model("", str(source), made, precision, PROVIDER[precision], cache)
        (target / "onnx").mkdir(parents=True)
        # One file: the weights are small enough to stand in the graph.
        onnx.save(onnx.load(f"{made}/model.onnx"), str(target / "onnx" / FILES[precision]))
    for name in ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(source / name, target / name)


@torch.no_grad()
def difference(model: Model, graph: Path, precision: str) -> float:
    """Largest difference of logits between PyTorch and the exported graph on one random sequence."""
    n = 200
    ids = torch.randint(0, model.s.vocab_size, (1, n), generator=torch.Generator().manual_seed(1))
    mask = torch.ones(n, n, dtype=torch.bool).tril()[None, None]
    expected = model.logits(model.hidden(ids, torch.arange(n)[None], mask)).numpy()
    half = np.float16 if precision == "fp16" else np.float32
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
            feed[value.name] = np.zeros((1, model.s.kv_heads, 0, model.s.head_dim), half)
    return float(np.abs(session.run(["logits"], feed)[0] - expected).max())


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--name", default="cpu", help="run under work/")
    p.add_argument("--precision", choices=list(FILES), default="fp16")
    p.add_argument("--to", type=Path, default=paths.MODEL)
    a = p.parse_args()
    model, state = read(a.name)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "source", Path(folder) / "target"
        source.mkdir()
        write_source(model, source)
        build(source, target, a.precision)
        gap = difference(model, target / "onnx" / FILES[a.precision], a.precision)
        size = sum(f.stat().st_size for f in target.rglob("*") if f.is_file())
        print(f"step {state['step']}: {size:,} bytes, logits differ by {gap:.2e} at most")
        if not gap < TOLERANCE[a.precision] or size > MOST_BYTES:
            raise SystemExit("not exported: the graph does not agree, or is too large")
        a.to.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(a.to / "onnx", ignore_errors=True)
        shutil.copytree(target, a.to, dirs_exist_ok=True)


if __name__ == "__main__":
    main()
