"""Creates tasks about a document."""

from random import Random

from banks import fields
from documents import Document, make_document
from extractions import extract_flags, extract_json_schema, extract_keys, extract_open, extract_schema
from label_decisions import SOURCES, decide_label
from rivals import shared
from tasks import Task
from value_decisions import decide_bound, decide_presence, decide_value

MAKERS = [
    (decide_label, 7), (decide_presence, 1.5), (decide_value, 3), (decide_bound, 0.6),
    (extract_keys, 3.5), (extract_schema, 1.6), (extract_json_schema, 0.2), (extract_open, 0.2), (extract_flags, 1),
]  # fmt: skip
HARD = {decide_presence: 3, decide_value: 4.5, decide_bound: 2}
"""Weights of tasks that training asks more often than a test does, because they are learned slowly."""


def make_tasks(r: Random, d: Document, split: str, count: int) -> list[Task]:
    tasks = []
    makers = [m for m, _ in MAKERS]
    weights = [HARD.get(m, w) if split == "train" else w for m, w in MAKERS]
    if not any(a in SOURCES for a in d.labels):
        weights[0] = 0
    elif set(d.labels) == {"kind"}:
        weights[0] = 4 if split == "train" else 2.5
    if not d.facts:
        weights = [weights[0], 0.5, 0, 0, 0.3, 0.2, 0.2, 0, 1]
    for maker in r.choices(makers, weights, k=count):
        task = maker(r, d, split)
        if task:
            tasks.append(task)
    return tasks


WHO_IS_WHO = [(decide_value, 4), (extract_keys, 4), (extract_schema, 2)]


def who_is_who(r: Random, split: str) -> tuple[Document, list[Task]]:
    """Creates a document with at least two values of the same type, most often persons, and tasks that have to distinguish them."""
    while True:
        d = make_document(r, split)
        types = {fields()[s].type for s in shared(d)}
        if "person" in types or types and r.random() < 0.5:
            break
    d.rivals_first = 1.0
    makers, weights = zip(*WHO_IS_WHO)
    tasks = [maker(r, d, split) for maker in r.choices(makers, weights, k=10 - int(r.random() * 6))]
    return d, [t for t in tasks if t]
