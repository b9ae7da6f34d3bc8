"""Exercises in comparing: numbers and dates that belong to names."""

from random import Random

from chance import choose
from decisions import finish, yes_no
from documents import Document
from names import company, person, product
from tasks import Task


def comparison(r: Random, split: str) -> tuple[Document, list[Task]]:
    """Numbers that belong to names: which is more, less, first, last, above a bound."""
    names = list(
        dict.fromkeys(
            (person if r.random() < 0.4 else company if r.random() < 0.5 else product)(r, split)
            for _ in range(2 + int(r.random() * 2))
        )
    )
    top = choose(r, (20, 100, 1000))
    numbers = r.sample(range(1, top), len(names))
    unit = choose(
        r,
        (
            ("costs {} euros", "cheapest", "most expensive", "cost"),
            ("has {} points", "last", "first", "points"),
            ("is {} years old", "youngest", "oldest", "age"),
            ("weighs {} kg", "lightest", "heaviest", "weight"),
            ("waited {} minutes", "shortest wait", "longest wait", "minutes"),
        ),
    )
    text = choose(r, (". ", ", ", "; ", "\n")).join(f"{n} {unit[0].format(x)}" for n, x in zip(names, numbers)) + "."
    tasks = []
    for _ in range(8):
        x = r.random()
        if x < 0.5 and len(names) > 1:
            low = r.random() < 0.5
            best = names[numbers.index(min(numbers) if low else max(numbers))]
            tasks.append(
                finish(
                    r,
                    "compare",
                    choose(r, ("Which is the {}?", "Who or what is {}?", "Name the {}.")).format(unit[1 if low else 2]),
                    r.sample(names, len(names)),
                    best,
                )
            )
        elif x < 0.75:
            i = int(r.random() * len(names))
            bound = max(1, numbers[i] + choose(r, (-1, 1)) * (1 + int(r.random() * top / 2)))
            options, value = yes_no(r, numbers[i] > bound)
            tasks.append(
                finish(
                    r,
                    "compare_bound",
                    choose(r, ("{}: more than {}?", "Is the number of {} above {}?", "Does {} have over {}?")).format(
                        names[i], bound
                    ),
                    options,
                    value,
                )
            )
        else:
            i = int(r.random() * len(names))
            tasks.append(
                finish(
                    r,
                    "compare_value",
                    f"How much does {names[i]} have?" if r.random() < 0.5 else f"{names[i]}?",
                    [str(x) for x in r.sample(numbers, len(numbers))],
                    str(numbers[i]),
                )
            )
    return Document("numbers", text, {}, {}), tasks
