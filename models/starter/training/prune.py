"""Cuts the starter's network out of the published one: `python prune.py config/cpu.json`, after `make_tokenizer.py`. Writes the run's first checkpoint.

Layers are left out one after another, always the one without which the loss of our tasks grows least; of each layer that stays, those neurons stay that
add most to the residual stream on our texts (activation times the length of its column). Tokens keep their published rows.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import torch
from tokenizers import Tokenizer

from checkpoint import write_first
from make_tokenizer import SPACE
from model import EMBED, Model, Shape, weighted_loss
from packing import Batch, Mix, Packer, tree_mask
from pretrained import Pretrained, load
from prompt import Encoder
from train import load_encoder

SAMPLE = Mix(row=640, rows=8, exercises=0.2, judged=0.4, chats=0.05, tasks=8, longest=260)
SPECIAL = {"<think>": "<repo_name>", "</think>": "<reponame>"}
"""Control tokens that the published vocabulary lacks, and the unused tokens whose rows they get."""


def rows(p: Pretrained, tokenizer: Tokenizer) -> torch.Tensor:
    """Returns the embedding table for our tokens. A word without a space before it gets the row of the word after a space, or the mean of
    both if it is capitalised and both are published."""
    table, number = p.state[EMBED], {t: i for i, t in enumerate(p.tokens)}
    made = table.mean(0).repeat(tokenizer.get_vocab_size(), 1)
    for token, i in tokenizer.get_vocab().items():
        token = SPECIAL.get(token, token)
        bare, spaced = number.get(token), number.get(SPACE + token)
        sources = [bare] if bare is not None else []
        if spaced is not None and len(token) > 1 and (bare is None or token[0].isupper()):
            sources.append(spaced)
        if sources:
            made[i] = table[sources].mean(0)
    return made


class Sample:
    """Holds one batch, and computes the loss of a part of the network on it."""

    def __init__(self, encoder: Encoder, model: Model):
        b: Batch = Packer(encoder, "train").batch(Random("prune"), SAMPLE)
        put = torch.from_numpy
        self.model, positions = model, put(b.positions)
        self.mask = tree_mask(put(b.context), put(b.branch), put(b.rooted))
        self.cos, self.sin = (t[positions].unsqueeze(1).bfloat16() for t in (model.cos, model.sin))
        self.begin = model.model.embed_tokens(put(b.tokens)).bfloat16()
        self.index, self.target, self.weight = put(b.index), put(b.target), put(b.weight)

    def through(self, layers: list[int], x: torch.Tensor | None = None) -> torch.Tensor:
        x = self.begin if x is None else x
        for i in layers:
            x = self.model.model.layers[i](x, self.cos, self.sin, self.mask)
        return x

    def loss(self, x: torch.Tensor) -> float:
        logits = self.model.logits(self.model.model.norm(x).flatten(0, 1)[self.index])
        return float(weighted_loss(logits, self.target, self.weight))


def choose_layers(sample: Sample, layers: list[int], count: int) -> list[int]:
    """Returns the layers that stay. The first and the last always do, because they connect to the embedding and the head."""
    while len(layers) > count:
        x, losses = sample.begin, {}
        for at, layer in enumerate(layers):
            if 0 < at < len(layers) - 1:
                losses[layer] = sample.loss(sample.through(layers[at + 1 :], x))
            x = sample.through([layer], x)
        # Removes several layers at once while there are many, but never neighbours, because one may do the other's work.
        most, gone = 1 + (len(layers) - count) // 6, []
        for layer in sorted(losses, key=losses.get):
            if len(gone) < most and all(abs(layers.index(layer) - layers.index(g)) > 1 for g in gone):
                gone.append(layer)
        print(
            f"{len(layers)} layers, loss {sample.loss(x):.3f}; without "
            + ", ".join(f"{g}: {losses[g]:.3f}" for g in gone),
            flush=True,
        )
        layers = [i for i in layers if i not in gone]
    return layers


def choose_neurons(sample: Sample, layer: int, x: torch.Tensor, count: int) -> tuple[list[int], float]:
    """Returns the neurons that stay, and the share of the output of all neurons (sum of squares) that they contribute."""
    seen = []
    mlp = sample.model.model.layers[layer].mlp
    hook = mlp.down_proj.register_forward_pre_hook(lambda _, args: seen.append(args[0].float()))
    sample.through([layer], x)
    hook.remove()
    added = seen[0].flatten(0, 1).square().mean(0) * mlp.down_proj.weight.float().square().sum(0)
    best = added.topk(count)
    return sorted(best.indices.tolist()), float(best.values.sum() / added.sum())


@torch.no_grad()
def cut(p: Pretrained, encoder: Encoder, shape: Shape) -> dict[str, torch.Tensor]:
    state = {**p.state, EMBED: rows(p, encoder.t)}
    whole = Model(replace(p.shape, vocab_size=encoder.size)).eval()
    whole.load_state_dict(state)
    sample = Sample(encoder, whole.bfloat16())
    layers = choose_layers(sample, list(range(p.shape.layers)), shape.layers)
    print(f"layers {layers}: loss {sample.loss(sample.through(layers)):.3f}")
    made = {EMBED: state[EMBED], "model.norm.weight": state["model.norm.weight"]}
    x = sample.begin
    for i, layer in enumerate(layers):
        stay, share = choose_neurons(sample, layer, x, shape.mlp_size)
        print(f"layer {layer}: {100 * share:.0f}% of what its neurons add")
        x = sample.through([layer], x)
        begin = f"model.layers.{layer}."
        for name, value in state.items():
            if name.startswith(begin):
                if "gate_proj" in name or "up_proj" in name:
                    value = value[stay]
                elif "down_proj" in name:
                    value = value[:, stay]
                made[f"model.layers.{i}." + name.removeprefix(begin)] = value.contiguous()
    return made


def main(config: str):
    encoder = load_encoder()
    shape = Shape(vocab_size=encoder.size, **json.loads(Path(config).read_text(encoding="utf-8"))["shape"])
    state = cut(load(), encoder, shape)
    write_first(config, shape, state)


if __name__ == "__main__":
    main(*sys.argv[1:])
