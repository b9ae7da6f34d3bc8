"""Compares the native step with PyTorch's own gradients on a batch: `python check_native.py`. Ends with an error where they differ.

The native step rounds to bfloat16 what matrices multiply, so gradients agree in direction to about one part in a hundred.
"""

from random import Random

import torch
import torch.nn.functional as F

from model import Model, Shape
from native import Step
from packing import Mix, Packer, tree_mask
from train import load_encoder

LEAST = 0.98
"""Cosine between two gradients of a parameter."""


def main():
    torch.manual_seed(0)
    encoder = load_encoder()
    window = 4096
    shape = Shape(window, hidden_size=160, layers=4, heads=5, kv_heads=5, head_dim=32, mlp_size=416, rope_theta=1e5)
    model = Model(shape)
    for name, p in model.named_parameters():
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            torch.nn.init.normal_(p, std=0.02)
    r, mix = Random("check"), Mix(row=448, rows=5, exercises=0.3, judged=0.2, chats=0.1, tasks=8, longest=200)
    b = Packer(encoder, "train").batch(r, mix).window(r, window, encoder.size)

    put = torch.from_numpy
    hidden = model.hidden(put(b.tokens), put(b.positions), tree_mask(put(b.context), put(b.branch), put(b.rooted)))
    weight = put(b.weight)
    each = F.cross_entropy(model.logits(hidden.flatten(0, 1)[put(b.index)]), put(b.target), reduction="none")
    loss = (each * weight).sum() / weight.sum()
    loss.backward()
    expected = {n: p.grad.flatten() for n, p in model.named_parameters()}

    for threads in (1, 2):
        found = Step(model, threads)(b)
        if abs(found - loss.item()) > 0.01 * loss.item():
            raise SystemExit(f"loss: {found}, but PyTorch says {loss.item()}")
        cosines = {
            n: F.cosine_similarity(expected[n], p.grad.flatten(), dim=0).item() for n, p in model.named_parameters()
        }
        worst = min(cosines, key=cosines.get)
        print(f"{threads} threads: loss {found:.4f} ({loss.item():.4f}), worst cosine {cosines[worst]:.4f} at {worst}")
        if cosines[worst] < LEAST:
            raise SystemExit(f"{worst}: the gradients differ")


if __name__ == "__main__":
    main()
