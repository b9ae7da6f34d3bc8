"""Writes the held-out test set: `python make_test_set.py`. It uses only templates, names and wordings of the test part, and a fixed seed.

One JSON object a line: `context`, and `tasks` as the service takes them, each with the answer `expected` and the `skill` it needs.
"""

from random import Random

import paths
from document_tasks import make_tasks
from documents import make_document
from skills import make_exercise
from tasks import dump

TEXTS = 300
FILE = paths.ROOT / "benchmarks" / "quality" / "sets" / "held-out.jsonl"


def make_texts(r: Random, split: str, texts: int) -> list[dict]:
    found: list[dict] = []
    while len(found) < texts:
        # One text in six is an exercise: lists of names and values, comparisons, meanings of words.
        if len(found) % 6 == 5:
            document, tasks = make_exercise(r, split)
        else:
            document = make_document(r, split)
            tasks = make_tasks(r, document, split, 5)
        # Tasks in which the model chooses the names of fields, or the words of an answer, are omitted: no answer would be identical.
        tasks = [t for t in tasks if "options" in t.body or "keys" in t.body or "schema" in t.body]
        r.shuffle(tasks)
        tasks = list({dump(t.body): t for t in tasks}.values())[:4]
        if not tasks:
            continue
        lines = [
            {**t.body, "expected": t.answer if t.body["type"] == "extract" else t.answer["value"], "skill": t.skill}
            for t in tasks
        ]
        found.append({"context": document.text, "tasks": lines})
    return found


def main():
    FILE.parent.mkdir(parents=True, exist_ok=True)
    with open(FILE, "w", encoding="utf-8") as out:
        out.writelines(dump(text) + "\n" for text in make_texts(Random("held-out"), "test", TEXTS))


if __name__ == "__main__":
    main()
