"""Writes measured figures into the model card: `npm run bench -- quality --skills --json > quality.jsonl`, then
`python make_card.py --name cpu quality.jsonl`. Changes only the marked parts of the card and of `skills.md`.
"""

import argparse
import json
import re
from pathlib import Path

import paths
from checkpoint import read

CARD = paths.MODEL / "README.md"
SKILLS = paths.TRAINING / "skills.md"
CORRECTED = "held-out, as corrected by readers"
AIMS = {("held-out", "decide"): 92, ("held-out", "fields"): 88, ("natural", "decide"): 75, ("natural", "fields"): 65}


def replace(file: Path, mark: str, inside: str) -> None:
    """Replaces the text between `<!-- MARK -->` and `<!-- /MARK -->` in a file. Raises an error if a mark is missing."""
    text = file.read_text(encoding="utf-8")
    pattern = re.compile(rf"(<!-- {mark} -->\n).*?(<!-- /{mark} -->)", re.S)
    if not pattern.search(text):
        raise ValueError(f"{file} has no mark {mark}")
    file.write_text(pattern.sub(lambda m: m.group(1) + inside + m.group(2), text), encoding="utf-8")


def accuracy(figures: list[dict]) -> str:
    found = {(f["system"], f["case"], f["metric"].split(" ")[0]): f for f in figures}
    lines = ["| set | what | this model | majority | random | aim | |", "|---|---|---|---|---|---|---|"]
    for (case, what), aim in AIMS.items():
        mine, majority, random = (found[s, case, what] for s in ("assay/starter", "majority", "random"))
        missed = "reached" if mine["value"] >= aim else f"missed by {aim - mine['value']:.1f} points"
        lines.append(
            f"| {case} | {what} ({mine['unit'].removeprefix('% of ')}) | **{mine['value']:.1f}%** | {majority['value']:.1f}% "
            f"| {random['value']:.1f}% | {aim}% | {missed} |"
        )
    for what in ("decide", "fields"):
        mine = found["assay/starter", CORRECTED, what]
        lines.append(f"| {CORRECTED} | {what} ({mine['unit'].removeprefix('% of ')}) | {mine['value']:.1f}% | | | | |")
    for f in figures:
        if (f["system"], f["case"]) == ("assay/starter", "chat"):
            lines.append(f"| chat | {f['metric']} ({f['unit'].removeprefix('% of ')}) | {f['value']:.1f}% | | | | |")
    return "\n".join(lines) + "\n"


def skills(figures: list[dict]) -> str:
    lines = ["By skill, on the held-out set:", "", "| skill | right | of |", "|---|---|---|"]
    for f in figures:
        case, _, skill = f["case"].partition(" ")
        if case == "held-out" and skill and f["system"] == "assay/starter":
            lines.append(
                f"| {f['metric'].split(' ')[0]}: `{skill}` | {f['value']:.0f}% | {f['unit'].removeprefix('% of ')} |"
            )
    return "\n".join(lines) + "\n"


def facts(name: str) -> str:
    model, state = read(name)
    s = model.s
    count = sum(p.numel() for p in model.parameters())
    embedding = model.model.embed_tokens.weight.numel()
    graphs = list((paths.MODEL / "onnx").iterdir())
    size = sum(f.stat().st_size for f in graphs)
    return "\n".join(
        (
            "| | |",
            "|---|---|",
            f"| Architecture | decoder-only, `LlamaForCausalLM`: {s.layers} layers, width {s.hidden_size}, {s.heads} heads, SwiGLU, RMSNorm, rotary positions, tied embeddings |",
            f"| Parameters | {count / 1e6:.2f} million ({(count - embedding) / 1e6:.2f} million without the embeddings) |",
            f"| Vocabulary | {s.vocab_size:,} tokens, byte-level BPE |",
            f"| Files | {size / 1e6:.1f} MB, ONNX with 4-bit weights (MatMulNBits, GroupQueryAttention), made by the onnxruntime-genai model builder |",
            f"| Last run of training | {state['tokens'] / 1e6:.1f} million tokens in {state['step']:,} steps and {state['seconds'] / 60:.0f} minutes on two CPU cores that other programs used at the same time |",
            "",
        )
    )


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("figures", help="what `npm run bench -- quality --skills --json` printed")
    p.add_argument("--name", default="cpu", help="run under work/")
    a = p.parse_args()
    lines = Path(a.figures).read_text(encoding="utf-8").splitlines()
    figures = [json.loads(line) for line in lines if line.startswith("{")]
    replace(CARD, "facts", facts(a.name))
    replace(CARD, "accuracy", accuracy(figures))
    replace(SKILLS, "skills", skills(figures))


if __name__ == "__main__":
    main()
