"""Exercises in choosing between options: which option occurs in the text at all. Finding values and choosing by meaning build on this step,
so it is frequent and cheap."""

from random import Random

import values
from banks import bank
from chance import choose
from decisions import asked, finish, yes_no
from documents import Document
from names import invented
from record_skills import nouns
from tasks import Task


def mention(r: Random, split: str) -> tuple[Document, list[Task]]:
    """Creates a text of a few words or values; the only question is whether each is in it."""
    kind = choose(r, ("noun", "noun", "name", *values.TYPES))
    draw = {"noun": lambda: choose(r, nouns(split)), "name": lambda: invented(r, split)}.get(kind)
    draw = draw or (lambda: values.TYPES[kind](r, split))
    pool = list(dict.fromkeys(draw() for _ in range(16)))
    here = pool[: 2 + int(r.random() * 4)]
    text = choose(r, (", ", "\n", "; ", " and ", ". ", " ")).join(here)
    if r.random() < 0.5:
        text = " ".join(choose(r, bank("questions")["sentence"].take(split)).format(x) for x in here)
    away = [x for x in pool[len(here) :] if x not in text]
    if len(away) < 2:
        return mention(r, split)
    tasks = []
    for _ in range(10):
        x = r.random()
        if x < 0.5:
            right = choose(r, here)
            options = [right, *r.sample(away, min(len(away), 1 + int(r.random() * r.random() * 6)))]
            r.shuffle(options)
            tasks.append(finish(r, "mention", asked(r, "mention", split), options, right))
        elif x < 0.6 and len(here) > 1:
            right = choose(r, away)
            options = [right, *r.sample(here, min(len(here), 1 + int(r.random() * 3)))]
            r.shuffle(options)
            tasks.append(finish(r, "mention_not", asked(r, "mention_not", split), options, right))
        elif x < 0.85:
            right = r.random() < 0.5
            options, value = yes_no(r, right)
            word = choose(r, here if right else away)
            tasks.append(finish(r, "mention_yes_no", asked(r, "presence", split).format(word), options, value))
        elif not any(w.isdigit() for w in pool):
            # JavaScript would put keys that are numbers in another order.
            flags = {w: w in here for w in r.sample(here + away, min(6, len(here + away)))}
            body = {"type": "extract", "instruction": "what is mentioned", "schema": dict.fromkeys(flags, "boolean")}
            tasks.append(Task("mention_flags", body, flags))
    return Document("words", text), tasks
