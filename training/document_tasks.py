"""The tasks that are put about a document."""

from random import Random

from decisions import QUESTIONS, decide_label, decide_presence, decide_value
from documents import Document
from extractions import extract_keys, extract_schema
from tasks import Task

MAKERS = [(decide_label, 5), (decide_presence, 1.5), (decide_value, 3), (extract_keys, 4.5), (extract_schema, 1)]


def make_tasks(r: Random, d: Document, split: str, count: int) -> list[Task]:
    tasks = []
    makers = [m for m, _ in MAKERS]
    weights = [w if m is not decide_label or any(a in QUESTIONS for a in d.labels) else 0 for m, w in MAKERS]
    if set(d.labels) == {"kind"}:
        weights[0] = 1
    if not d.facts:
        weights = [weights[0], 0.5, 0, 0.3, 0]
    for maker in r.choices(makers, weights, k=count):
        task = maker(r, d, split)
        if task:
            tasks.append(task)
    return tasks
