"""A run's latest checkpoint."""

import os
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


def write(name: str, state: dict) -> None:
    """Makes this the run's latest checkpoint. A run that is cut while it writes keeps the one before."""
    folder = paths.WORK / name
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(state, folder / "new.pt")
    os.replace(folder / "new.pt", folder / "last.pt")


def write_first(config: str, shape: Shape, state: dict[str, torch.Tensor]) -> None:
    """The checkpoint with which training by this configuration begins; its run has the configuration's name."""
    made = {"model": state, "optimizers": [], "shape": shape.as_dict(), "step": 0, "tokens": 0, "seconds": 0.0}
    write(Path(config).stem, made)
    print(f"{sum(v.numel() for v in state.values()):,} parameters")
