"""Compares the native step with PyTorch's own gradients: `python check_native.py`. Ends with an error where they differ.
With `--speed` it also prints how many tokens a second the step takes at the size that is trained.

The native step rounds what matrices multiply to 16 bits, so gradients agree in direction to about one part in a hundred.
"""

import json
import sys
import time
from contextlib import nullcontext
from random import Random

import torch
import torch.nn.functional as F

import paths
from model import Model, Shape, weighted_loss
from native import Step
from packing import Mix, Packer, tree_mask
from quantise import with_rounded
from train import load_encoder, stage_mix

LEAST = 0.98
"""Least accepted cosine between two gradients of a parameter."""
DRAWS = 24
WINDOW = 4096
NARROW = Shape(WINDOW, hidden_size=160, layers=4, heads=5, kv_heads=5, head_dim=32, mlp_size=416, rope_theta=1e5)
WIDE = Shape(WINDOW, hidden_size=576, layers=3, heads=9, kv_heads=3, head_dim=64, mlp_size=704, rope_theta=1e5)
SMALL = Mix(row=448, rows=5, exercises=0.3, judged=0.2, chats=0.1, tasks=8, longest=200)


def make_model(shape: Shape) -> Model:
    """Returns a model with weights of about the size that they have in training."""
    torch.manual_seed(0)
    model = Model(shape)
    for name, p in model.named_parameters():
        if name.endswith(("embed_tokens.weight", "o_proj.weight", "down_proj.weight")):
            torch.nn.init.normal_(p, std=0.1 if "embed" in name else 0.02)
    return model


def compare(model: Model, b, round_weights: bool):
    put = torch.from_numpy
    model.zero_grad()
    with with_rounded(model) if round_weights else nullcontext():
        hidden = model.hidden(put(b.tokens), put(b.positions), tree_mask(put(b.context), put(b.branch), put(b.rooted)))
        loss = weighted_loss(model.logits(hidden.flatten(0, 1)[put(b.index)]), put(b.target), put(b.weight))
        loss.backward()
    expected = {n: p.grad.flatten().clone() for n, p in model.named_parameters()}

    for threads in (1, 2):
        step = Step(model, threads)
        for _ in range(2):  # the second time with the memory of the first
            found = step(b, round_weights)
        if abs(found - loss.item()) > 0.01 * loss.item():
            raise SystemExit(f"loss: {found}, but PyTorch says {loss.item()}")
        cosines, sizes = {}, {}
        for n, p in model.named_parameters():
            cosines[n] = F.cosine_similarity(expected[n], p.grad.flatten(), dim=0).item()
            sizes[n] = (p.grad.norm() / expected[n].norm()).item()
        worst = min(cosines, key=cosines.get)
        print(
            f"hidden {model.s.hidden_size}{', 4 bits' * round_weights}, {threads} threads: loss {found:.4f} ({loss.item():.4f}), worst cosine "
            f"{cosines[worst]:.4f} at {worst}, sizes {min(sizes.values()):.3f} to {max(sizes.values()):.3f}"
        )
        if not (cosines[worst] >= LEAST and all(abs(s - 1) <= 0.05 for s in sizes.values())):
            raise SystemExit("the gradients differ")


def flat(model: Model) -> torch.Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def compare_drawn(model: Model, b):
    """Checks that the gradients of randomly drawn branches equal those of all branches on average, and that no single draw does already."""
    step = Step(model, 2)
    loss = step(b)
    whole, mean = flat(model), torch.zeros(1)
    for seed in range(DRAWS):
        found = step(b, part=0.5, seed=seed * 100)
        if abs(found - loss) > 0.001 * loss:
            raise SystemExit(f"loss: {found} with drawn branches, {loss} without")
        mean = mean + flat(model) / DRAWS
    alone, cosine = (F.cosine_similarity(whole.double(), g.double(), dim=0).item() for g in (flat(model), mean))
    size = (mean.norm() / whole.norm()).item()
    print(
        f"hidden {model.s.hidden_size}, half of the branches: cosine {alone:.4f}, of the mean of {DRAWS} {cosine:.4f}, size {size:.3f}"
    )
    if not (alone < cosine and cosine >= LEAST and abs(size - 1) <= 0.05):
        raise SystemExit("the drawn gradients are not the whole one on average")


def main():
    encoder = load_encoder()
    packer, r = Packer(encoder, "train"), Random("check")
    b = packer.batch(r, SMALL).window(r, WINDOW, encoder.size)
    for shape, round_weights in ((NARROW, False), (WIDE, False), (WIDE, True)):
        compare(make_model(shape), b, round_weights)
    compare_drawn(make_model(WIDE), b)
    if "--speed" in sys.argv:
        c = json.loads((paths.TRAINING / "config" / "cpu.json").read_text(encoding="utf-8"))
        b = packer.batch(r, stage_mix(c, c["stages"][-1])).window(r, WINDOW, encoder.size)
        step = Step(make_model(Shape(WINDOW, **c["shape"])), threads=2)
        seconds = []
        for _ in range(8):
            start = time.perf_counter()
            step(b)
            seconds.append(time.perf_counter() - start)
        print(f"{b.tokens.size / min(seconds):,.0f} tokens a second on 2 threads, the best of {len(seconds)} steps")


if __name__ == "__main__":
    main()
