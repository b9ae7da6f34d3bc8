"""A run's latest checkpoint."""

from pathlib import Path

import torch

import paths
from model import Model, Shape


def read(name: str) -> tuple[Model, dict]:
    """The network and all that was stored. Where a mean of the weights is being taken, that is the network."""
    state = torch.load(paths.WORK / name / "last.pt", map_location="cpu", weights_only=True)
    model = Model(Shape(**state["shape"])).eval()
    model.load_state_dict(state["mean"]["weights"] if "mean" in state else state["model"])
    return model, state


def write_first(config: str, shape: Shape, state: dict[str, torch.Tensor]) -> None:
    """The checkpoint with which training by this configuration begins; its run has the configuration's name."""
    folder = paths.WORK / Path(config).stem
    folder.mkdir(parents=True, exist_ok=True)
    made = {"model": state, "optimizers": [], "shape": shape.as_dict(), "step": 0, "tokens": 0, "seconds": 0.0}
    torch.save(made, folder / "last.pt")
    print(f"{sum(v.numel() for v in state.values()):,} parameters")
