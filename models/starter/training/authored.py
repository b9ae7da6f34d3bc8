"""What the files of hand-written texts share (`judged.py`, `conversations.py`): values that others may stand for, and wordings side by side."""

from collections.abc import Callable
from random import Random

import values

Wordings = list[str]
"""Ways to say the same."""


def split_wordings(text: str) -> Wordings:
    return [w.strip() for w in text.split(";") if w.strip()]


def read_swap(line: str) -> tuple[str, str]:
    """`~ Ann Lee : person`: a value and its type. Raises ValueError for a type that there is not."""
    literal, _, kind = line.removeprefix("~ ").rpartition(" : ")
    if kind.strip() not in values.TYPES:
        raise ValueError(f"no type of values.py: {line}")
    return literal.strip(), kind.strip()


def check_swaps(text: str, swaps: dict[str, str]) -> None:
    """Raises ValueError for a value that the text lacks."""
    for literal in swaps:
        if literal not in text:
            raise ValueError(f"~ {literal} does not stand in the text that begins {text[:50]!r}")


def exchange(r: Random, split: str, swaps: dict[str, str]) -> Callable[[str], str]:
    """Puts other values of the same types into a text, no two of them the same; the longest first, for one may stand in another."""
    change: dict[str, str] = {}
    for old, kind in swaps.items():
        new = values.TYPES[kind](r, split)
        if r.random() < 0.8 and new not in swaps and not any(new in v or v in new for v in change.values()):
            change[old] = new
    order = sorted(change, key=len, reverse=True)

    def put(text: str) -> str:
        for i, old in enumerate(order):
            text = text.replace(old, f"\x00{i}\x00")
        for i, old in enumerate(order):
            text = text.replace(f"\x00{i}\x00", change[old])
        return text

    return put
