"""Exercises in the meaning of single words: their group, and whether they are positive."""

from random import Random

from banks import bank
from chance import choose
from decisions import finish, yes_no
from documents import Document
from tasks import Task


def word_classes(r: Random, split: str) -> tuple[Document, list[Task]]:
    """Asks to which group a word belongs; the text does not contain the group's name. Test data asks about known words in new wordings."""
    classes = list(bank("classes").values())
    here = r.sample(classes, 1 + int(r.random() * 3))
    words = {s.key: choose(r, s.take("train")) for s in here}
    text = " ".join(choose(r, bank("questions")["sentence"].take(split)).format(w) for w in words.values())
    tasks = []
    for _ in range(5):
        about = choose(r, here)
        away = r.sample([s for s in classes if s not in here], 1 + int(r.random() * 6))
        if r.random() < 0.25:
            asked = about if r.random() < 0.5 else away[0]
            options, value = yes_no(r, asked is about)
            tasks.append(
                finish(
                    r,
                    "class_yes_no",
                    choose(
                        r,
                        ("Does the text mention this: {}?", "Is it about {}?", "Is there something of this kind: {}?"),
                    ).format(choose(r, asked.names(split))),
                    options,
                    value,
                )
            )
            continue
        truth = choose(r, about.names(split))
        options = [truth] + [choose(r, s.names(split)) for s in away]
        r.shuffle(options)
        questions = [q for q in bank("questions")["class"].take(split) if len(here) == 1 or "{}" in q] or [
            "What kind of thing is {}?"
        ]
        tasks.append(finish(r, "class", choose(r, questions).format(words[about.key]), options, truth))
    if len(here) > 1:
        about = choose(r, here)
        options = list(words.values())
        r.shuffle(options)
        tasks.append(
            finish(
                r,
                "class_which",
                choose(r, ("Which one is this: {}?", "Which of them belongs to {}?", "Which word means: {}?")).format(
                    choose(r, about.names(split))
                ),
                options,
                words[about.key],
            )
        )
    return Document("words", text, {}, {}), tasks


def polarity(r: Random, split: str) -> tuple[Document, list[Task]]:
    """Creates a text that praises or criticises several things in one word each."""
    things = r.sample(bank("reviews")["thing"].take(split), 1 + int(r.random() * 3))
    sides = [choose(r, ("positive", "negative")) for _ in things]
    words = [choose(r, bank("polarity")[s].take("train")) for s in sides]
    text = " ".join(
        choose(
            r,
            (
                "The {} is {}.",
                "I find the {} {}.",
                "The {} was {}.",
                "We thought the {} was really {}.",
                "{}: {}.",
                "A {} that is {}.",
            ),
        ).format(t, w)
        for t, w in zip(things, words)
    )
    tasks = []
    for _ in range(4):
        i = int(r.random() * len(things))
        thing, side = things[i], sides[i]
        x = r.random()
        if x < 0.5:
            options, value = yes_no(r, side == "positive")
            tasks.append(
                finish(
                    r,
                    "polarity_yes_no",
                    choose(
                        r, ("Is the {} good?", "Does the writer like the {}?", "Is the {} praised?", "Was the {} fine?")
                    ).format(thing),
                    options,
                    value,
                )
            )
        elif x < 0.8:
            pair = choose(
                r,
                (
                    ("positive", "negative"),
                    ("good", "bad"),
                    ("praise", "blame"),
                    ("satisfied", "dissatisfied"),
                    ("likes it", "dislikes it"),
                ),
            )
            options = list(pair)
            r.shuffle(options)
            tasks.append(
                finish(
                    r,
                    "polarity",
                    choose(
                        r, ("What is said of the {}?", "What does the writer think of the {}?", "Opinion on the {}?")
                    ).format(thing),
                    options,
                    pair[side == "negative"],
                )
            )
        elif sides.count(side) == 1 and len(things) > 1:
            options = r.sample(things, len(things))
            tasks.append(
                finish(r, "polarity_which", f"What is {'good' if side == 'positive' else 'bad'}?", options, thing)
            )
    return Document("words", text, {}, {}), tasks
