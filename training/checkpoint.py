"""A run's latest checkpoint."""

import torch

import paths
from model import Model, Shape


def read(name: str) -> tuple[Model, dict]:
    state = torch.load(paths.WORK / name / "last.pt", map_location="cpu", weights_only=True)
    model = Model(Shape(**state["shape"])).eval()
    model.load_state_dict(state["model"])
    return model, state
