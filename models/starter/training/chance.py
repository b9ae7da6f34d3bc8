"""Random draws from a seeded generator."""

from random import Random


def choose(r: Random, items):
    return items[int(r.random() * len(items))]


def early(r: Random, items):
    """Returns an item of a list, the first ones with higher probability: they are the most common."""
    return items[int(len(items) * r.random() ** 1.6)]


def digits(r: Random, n: int) -> str:
    return "".join(choose(r, "0123456789") for _ in range(n))


def letters(r, n):
    return "".join(choose(r, "ABCDEFGHJKLMNPQRSTUVWXYZ") for _ in range(n))
