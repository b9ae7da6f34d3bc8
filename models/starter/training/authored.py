"""Code shared by the readers of hand-written texts (`judged.py`, `conversations.py`): values that can be exchanged for others, and
alternative wordings."""

from collections.abc import Callable
from random import Random

import values

Wordings = list[str]
"""Alternative wordings of the same thing."""


def split_wordings(text: str) -> Wordings:
    return [w.strip() for w in text.split(";") if w.strip()]


def read_swap(line: str) -> tuple[str, str]:
    """Parses a line such as `~ Ann Lee : person` to a value and its type. Raises ValueError for an unknown type."""
    literal, _, kind = line.removeprefix("~ ").rpartition(" : ")
    if kind.strip() not in values.TYPES:
        raise ValueError(f"no type of values.py: {line}")
    return literal.strip(), kind.strip()


def check_swaps(text: str, swaps: dict[str, str]) -> None:
    """Checks that the text contains every value that is to be exchanged. Raises ValueError if it does not."""
    for literal in swaps:
        if literal not in text:
            raise ValueError(f"~ {literal} does not stand in the text that begins {text[:50]!r}")


def exchange(r: Random, split: str, swaps: dict[str, str]) -> Callable[[str], str]:
    """Returns a function that replaces values in a text by others of the same types, no two of them equal. The longest are replaced first,
    because one may be part of another."""
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
