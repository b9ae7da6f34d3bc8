"""Exercises in the names of fields: the text states a value under one name, and the task asks for it under another."""

from functools import cache
from random import Random

import values
from banks import fields, keys_of, phrases_of
from chance import choose
from decisions import capital
from document_tasks import make_tasks
from documents import Document
from tasks import Task
from value_decisions import asks

NOTATIONS = (
    ("{}: {}", "\n"), ("{} = {}", "\n"), ("{} is {}", ". "), ("{}: {}", ", "), ("{} - {}", "\n"), ("{}: {}", " | "),
    ("{} was {}", ". "), ("{}\t{}", "\n"), ("{1} is {0}", ". "), ("{} {}", "; "), ("- {}: {}", "\n"), ("{1} ({0})", ", "),
)  # fmt: skip
KEYED = (0, 1, 3, 4, 5, 7, 10)
"""Indices of notations that can have a key instead of a phrase."""


def field_list(r: Random, split: str) -> tuple[Document, list[Task]]:
    """Creates a text with three to eight fields, often of few types, so that only the name tells which value is meant."""
    slots = r.sample(list(fields()), 10)
    if r.random() < 0.5:
        alike = slots_by_type()[choose(r, ("person", "id", "date", "amount", "int", "company", "city", "product"))]
        slots = r.sample(alike, min(len(alike), 4)) + slots[:3]
        r.shuffle(slots)
    facts: dict[str, str] = {}
    lines = []
    at = int(r.random() * len(NOTATIONS))
    pattern, glue = NOTATIONS[at]
    named: set[str] = set()
    keyed = at in KEYED and r.random() < 0.5
    for slot in slots[: 3 + int(r.random() * 6)]:
        name = (
            choose(r, keys_of(slot, split)).replace("_", choose(r, ("_", " ", " ")))
            if keyed
            else choose(r, phrases_of(slot, split))
        )
        if name.lower() in named or asks(name):
            continue
        named.add(name.lower())
        value = values.TYPES[fields()[slot].type](r, split)
        if value in facts.values():
            continue
        facts[slot] = value
        lines.append(pattern.format(capital(name) if keyed or r.random() < 0.8 else name, value))
    text = glue.join(lines) + ("." if glue == ". " else "")
    d = Document("fields", text, facts, {}, listed=True)
    return d, make_tasks(r, d, split, 8)


@cache
def slots_by_type() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for slot, f in fields().items():
        found.setdefault(f.type, []).append(slot)
    return found
