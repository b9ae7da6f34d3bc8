"""The mean of a run's weights and the released ones: `python blend.py further --released 0.25`, with the packages of requirements-export.txt.

Two runs apart, and still their mean is often better than each (model soups, Wortsman et al. 2022). Written as a run of its own, `NAME-blend`, which is
evaluated and exported as any other.
"""

import argparse

import torch

import paths
import released
from checkpoint import read


@torch.no_grad()
def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("name", help="run under work/")
    p.add_argument("--released", type=float, default=0.25, help="share of the released weights, 0 to 1")
    a = p.parse_args()
    if not 0 <= a.released <= 1:
        p.error(f"--released is a share from 0 to 1, not {a.released}")
    model, state = read(a.name)
    before = released.read(model.s).state_dict()
    blend = {k: w.lerp(before[k], a.released) for k, w in model.state_dict().items()}
    folder = paths.WORK / f"{a.name}-blend"
    folder.mkdir(exist_ok=True)
    # What optimizers knew is of other weights.
    torch.save({k: v for k, v in state.items() if k != "mean"} | {"model": blend, "optimizers": []}, folder / "last.pt")
    print(f"{folder.name}: {100 * a.released:g}% of the released weights")


if __name__ == "__main__":
    main()
