"""4-bit weights in the format of onnxruntime's `MatMulNBits` and `GatherBlockQuantized`, and training with rounded weights."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

BLOCK = 64
"""Number of neighbouring weights of a row that share a scale."""


def quantise(w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """w: [rows, columns] -> numbers from -8 to 7 of the same shape, and scales [rows, columns / BLOCK] in half precision. The largest weight of a
    block becomes -8, whatever its sign (the symmetric blocks of onnxruntime)."""
    blocks = w.float().unflatten(1, (-1, BLOCK))
    largest = blocks.gather(2, blocks.abs().argmax(2, keepdim=True))
    scale = (largest / -8).half().float()
    numbers = (blocks / torch.where(scale == 0, 1, scale)).round_().clamp_(-8, 7)
    return numbers.flatten(1), scale[..., 0]


def rounded(w: torch.Tensor) -> torch.Tensor:
    """Returns weights rounded by `quantise`."""
    numbers, scale = quantise(w)
    return (numbers.unflatten(1, (-1, BLOCK)) * scale[..., None]).flatten(1)


@contextmanager
def with_rounded(model: torch.nn.Module) -> Iterator[None]:
    """Gives the model's matrices rounded weights inside the `with` block. Gradients are computed with these and applied to the exact ones
    (straight-through estimator, Bengio et al. 2013)."""
    exact = [(p, p.data) for p in model.parameters() if p.ndim == 2]
    for p, w in exact:
        p.data = rounded(w)
    try:
        yield
    finally:
        for p, w in exact:
            p.data = w
