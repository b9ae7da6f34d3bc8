"""Exercises in copying: names with values, in many notations."""

from functools import cache
from random import Random

import values
from banks import bank
from chance import choose
from decisions import capital, finish, yes_no
from documents import Document
from names import invented
from tasks import Task


@cache
def nouns(split: str) -> list[str]:
    return [w for s in bank("classes").values() for w in s.take(split)]


def records(r: Random, split: str) -> tuple[Document, list[Task]]:
    """Creates lines of names and values in many notations. Tasks ask for the names as they are written, and for some that are not in the
    text."""
    kind = choose(r, ("word", "word", *values.TYPES))
    make = (lambda: invented(r, split)) if kind == "word" else (lambda: values.TYPES[kind](r, split))
    pool = list(
        dict.fromkeys(choose(r, nouns(split)) if r.random() < 0.6 else invented(r, split).lower() for _ in range(9))
    )
    names, others = pool[: 2 + int(r.random() * 5)], pool[7:] or ["zero"]
    facts = {n: make() if r.random() < 0.7 else values.TYPES[choose(r, list(values.TYPES))](r, split) for n in names}
    pattern, glue = choose(
        r,
        (
            (("{}: {}"), "\n"),
            ("{} = {}", "\n"),
            # As answers have it: what the first layers begin with finds a value here, and other notations follow.
            ('"{}":"{}"', ","),
            ('{{"{}":"{}"}}', "\n"),
            ('"{}":"{}"', ","),
            ("{} is {}", ". "),
            ("{}: {}", ", "),
            ("{} -> {}", "; "),
            ("the {} has {}", ", "),
            ("{} ({})", ", "),
            ("the {} is {}", ". "),
            ("for the {} we have {}", ". "),
            ("{1} belongs to the {0}", ". "),
        ),
    )
    text = glue.join(pattern.format(n, v) for n, v in facts.items())
    tasks = []
    for _ in range(9):
        name = choose(r, names)
        x = r.random()
        if x < 0.35:
            wanted = {n: facts[n] for n in r.sample(names, min(len(names), 1 + int(r.random() * 6)))}
            for other in others[:2]:
                if r.random() < 0.35:
                    wanted[other] = None
            keys = list(wanted)
            r.shuffle(keys)
            tasks.append(
                Task(
                    "copy_keys",
                    {
                        "type": "extract",
                        "instruction": choose(r, ("the values", "Find the values.", "Extract all.")),
                        "keys": keys,
                    },
                    {k: wanted[k] for k in keys},
                )
            )
        elif x < 0.5:
            options = list(dict.fromkeys([facts[name], *r.sample(list(facts.values()), min(len(facts), 3)), make()]))
            if len(options) > 1:
                r.shuffle(options)
                tasks.append(
                    finish(
                        r,
                        "copy_options",
                        choose(r, ("What is {}?", "{}?", "Which value has {}?", "What belongs to the {}?")).format(
                            name
                        ),
                        options,
                        facts[name],
                    )
                )
        elif x < 0.8:
            right = r.random() < 0.5
            wrong = make() if r.random() < 0.4 or len(names) == 1 else facts[choose(r, [n for n in names if n != name])]
            if not right and wrong == facts[name]:
                continue
            options, value = yes_no(r, right)
            ask = choose(r, bank("questions")["is_value"].take(split))
            tasks.append(
                finish(r, "copy_is", capital(ask.format(name, facts[name] if right else wrong)), options, value)
            )
        elif x < 0.92:
            asked = name if r.random() < 0.5 else choose(r, others)
            options, value = yes_no(r, asked in facts)
            tasks.append(
                finish(
                    r,
                    "copy_presence",
                    choose(r, ("Is {} mentioned?", "Is there a {}?", "Does the text name {}?")).format(asked),
                    options,
                    value,
                )
            )
        else:
            tasks.append(
                finish(
                    r, "copy_free", choose(r, ("What is {}?", "{}?", "Value of {}?")).format(name), None, facts[name]
                )
            )
    return Document("records", text, {}, {}), tasks
