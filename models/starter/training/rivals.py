"""Finds values of a document that could be confused: the sender and the recipient, the net sum and the total."""

from collections import Counter
from random import Random

from banks import fields
from documents import Document


def rivals(r: Random, d: Document, split: str) -> set[str]:
    """Returns the slots of `shared` if they are to be asked for first; else none."""
    if split == "test" or r.random() >= d.rivals_first:
        return set()
    return shared(d)


def shared(d: Document) -> set[str]:
    """Returns the slots of the text whose type another slot of the text has, too."""
    types = Counter(fields()[s].type for s in d.facts)
    return {s for s in d.facts if types[fields()[s].type] > 1}
