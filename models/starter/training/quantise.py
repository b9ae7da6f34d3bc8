"""Weights of 4 bits as onnxruntime's `MatMulNBits` and `GatherBlockQuantized` read them, and training that reckons with them."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

BLOCK = 64
"""So many neighbouring weights of a row share a scale."""


def quantise(w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """w: [rows, columns] -> numbers from -8 to 7 of the same shape, and scales [rows, columns / BLOCK] in half precision. The largest weight of a
    block becomes -8, whatever its sign (the symmetric blocks of onnxruntime)."""
    blocks = w.float().unflatten(1, (-1, BLOCK))
    largest = blocks.gather(2, blocks.abs().argmax(2, keepdim=True))
    scale = (largest / -8).half().float()
    numbers = (blocks / torch.where(scale == 0, 1, scale)).round_().clamp_(-8, 7)
    return numbers.flatten(1), scale[..., 0]


def rounded(w: torch.Tensor) -> torch.Tensor:
    """What a weight is after `quantise`."""
    numbers, scale = quantise(w)
    return (numbers.unflatten(1, (-1, BLOCK)) * scale[..., None]).flatten(1)


@contextmanager
def with_rounded(model: torch.nn.Module) -> Iterator[None]:
    """Within, matrices have rounded weights; gradients are taken there and used on the exact ones (straight-through, Bengio et al. 2013)."""
    exact = [(p, p.data) for p in model.parameters() if p.ndim == 2]
    for p, w in exact:
        p.data = rounded(w)
    try:
        yield
    finally:
        for p, w in exact:
            p.data = w
