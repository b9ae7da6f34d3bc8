"""The mean of the weights over the steps of training. At a learning rate that does not fall, single steps only move around the mean: it is
better than any of them, and keeps what was learned longer ago (Izmailov et al. 2018, stochastic weight averaging)."""

import torch


class Mean:
    """Mean in which later weights count more, the n-th about n^3 times (Shamir and Zhang 2013, polynomial-decay averaging)."""

    ETA = 3

    def __init__(self, weights: dict[str, torch.Tensor] | None = None, samples: int = 0):
        self.weights, self.samples = weights, samples

    @torch.no_grad()
    def add(self, weights: dict[str, torch.Tensor]) -> None:
        self.samples += 1
        if self.weights is None:
            self.weights = {k: w.clone() for k, w in weights.items()}
        for k, w in weights.items():
            self.weights[k].lerp_(w, (self.ETA + 1) / (self.samples + self.ETA))

    def as_dict(self) -> dict:
        return {"weights": self.weights, "samples": self.samples}
