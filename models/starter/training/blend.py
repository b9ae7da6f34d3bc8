"""Writes the mean of several runs' weights: `python blend.py further=0.5 further-mean=0.25 released=0.25`, with the packages of
requirements-export.txt.

`further-mean` is the checkpoint that `train.py` stores when it continues from the mean of its weights; `released` are the weights in models/starter.
The mean of several runs is often better than each of them (model soups, Wortsman et al. 2022). It is written as a run of its own, `further-blend`,
which is evaluated and exported like any other.
"""

import argparse
import math

import torch

import released
from checkpoint import read, write

RELEASED = "released"


def share(text: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    return name, float(number)


@torch.no_grad()
def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("shares", nargs="+", type=share, help="run under work/ and its share, RUN=0.5; all make 1")
    shares: list[tuple[str, float]] = p.parse_args().shares
    if not math.isclose(sum(s for _, s in shares), 1):
        p.error(f"the shares make {sum(s for _, s in shares):g}, not 1")
    first, own = shares[0]
    if first == RELEASED:
        p.error("begin with the run that the weights are of")
    model, state = read(first)
    blend = {k: own * w for k, w in model.state_dict().items()}
    for name, part in shares[1:]:
        one = released.read(model.s) if name == RELEASED else read(name)[0]
        for k, w in one.state_dict().items():
            blend[k] += part * w
    # The state of the optimizers is omitted, because it belongs to other weights.
    write(f"{first}-blend", {k: v for k, v in state.items() if k != "mean"} | {"model": blend, "optimizers": []})
    print(f"{first}-blend")


if __name__ == "__main__":
    main()
