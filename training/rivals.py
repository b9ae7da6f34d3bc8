"""Values of a document that could be taken for one another: who wrote and who was written to, the net sum and the total."""

from collections import Counter
from random import Random

from banks import fields
from documents import Document

FIRST = 0.5
"""How often training asks for rivals first: most wrong answers were the value of another person, day or sum of the same text."""


def rivals(r: Random, d: Document, split: str) -> set[str]:
    """Slots of the text whose type another slot has, too, where they shall be asked for first; else none."""
    if split == "test" or not d.who_is_who and r.random() >= FIRST:
        return set()
    return shared(d)


def shared(d: Document) -> set[str]:
    types = Counter(fields()[s].type for s in d.facts)
    return {s for s in d.facts if types[fields()[s].type] > 1}
