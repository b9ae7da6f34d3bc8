"""Exercises without documents, each of which teaches one skill in few tokens. Training begins with these."""

from random import Random

from dictionary_skills import described, word_list
from documents import Document
from field_skills import field_list
from kindred_skills import kindred, theme
from list_skills import item_list
from meaning_skills import alike, suggested
from mention_skills import mention
from number_skills import comparison
from record_skills import records
from tasks import Task
from word_skills import polarity, word_classes

EXERCISES = [
    (records, 9), (mention, 3), (field_list, 5), (item_list, 7), (word_classes, 9), (polarity, 2.5), (comparison, 8),
    (suggested, 50), (alike, 7), (described, 3), (word_list, 1.5), (kindred, 2), (theme, 2),
]  # fmt: skip


def make_exercise(r: Random, split: str) -> tuple[Document, list[Task]]:
    # Some are drawn often, because others build on them; a test draws all about equally.
    weights = [w if split == "train" else min(w, 2) for _, w in EXERCISES]
    maker = r.choices([m for m, _ in EXERCISES], weights)[0]
    return maker(r, split)
