"""Reads and writes the latest checkpoint of a run."""

import os
from pathlib import Path

import torch

import paths
from model import Model, Shape


def read(name: str) -> tuple[Model, dict]:
    """Returns the network, and everything that was stored with it. While a mean of the weights is being taken, the network has the mean
    weights."""
    state = torch.load(paths.WORK / name / "last.pt", map_location="cpu", weights_only=True)
    model = Model(Shape(**state["shape"])).eval()
    model.load_state_dict(state["mean"]["weights"] if "mean" in state else state["model"])
    return model, state


def write(name: str, state: dict) -> None:
    """Stores a state as the run's latest checkpoint. If the run is interrupted while it writes, the previous checkpoint remains."""
    folder = paths.WORK / name
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(state, folder / "new.pt")
    os.replace(folder / "new.pt", folder / "last.pt")


def write_first(config: str, shape: Shape, state: dict[str, torch.Tensor]) -> None:
    """Writes the checkpoint with which training with this configuration begins. The run has the configuration's name."""
    made = {"model": state, "optimizers": [], "shape": shape.as_dict(), "step": 0, "tokens": 0, "seconds": 0.0}
    write(Path(config).stem, made)
    print(f"{sum(v.numel() for v in state.values()):,} parameters")
