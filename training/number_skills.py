"""Exercises in comparing: numbers and dates that belong to names."""

from random import Random

from chance import choose
from decisions import finish, yes_no
from documents import Document
from names import company, person, product
from tasks import Task

UNITS = (
    ("costs {} euros", "cheapest", "most expensive", "cost"),
    ("has {} points", "last", "first", "points"),
    ("is {} years old", "youngest", "oldest", "age"),
    ("weighs {} kg", "lightest", "heaviest", "weight"),
    ("waited {} minutes", "shortest wait", "longest wait", "minutes"),
)


def numbers(r: Random, split: str) -> tuple[Document, list[Task]]:
    """Both exercises of this file; the one that leads to the other comes more often."""
    return choose(r, (bounds, bounds, comparison))(r, split)


def comparison(r: Random, split: str) -> tuple[Document, list[Task]]:
    """Numbers that belong to names: which is more, less, first, last, above a bound."""
    names = list(dict.fromkeys(any_name(r, split) for _ in range(2 + int(r.random() * 2))))
    top = choose(r, (20, 100, 1000))
    numbers = r.sample(range(1, top), len(names))
    unit = choose(r, UNITS)
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


ABOVE = ("over", "above", "more_than", "exceeds", "greater_than", "higher_than", "beyond")
BELOW = ("under", "below", "less_than", "fewer_than", "lower_than", "smaller_than")


def bounds(r: Random, split: str) -> tuple[Document, list[Task]]:
    """One number and many bounds, of which an answer tells several: to hold numbers against each other is learned slowly."""
    name = any_name(r, split)
    number = sized(r)
    unit = choose(r, UNITS)
    text = f"{name} {unit[0].format(number)}."

    def flags() -> Task:
        answer = {}
        for _ in range(3 + int(r.random() * 5)):
            bound, more = near(r, number), r.random() < 0.5
            answer[f"{choose(r, ABOVE if more else BELOW)}_{bound}"] = (number > bound) == more
        body = {
            "type": "extract",
            "instruction": f"The {unit[3]} of {name}.",
            "schema": dict.fromkeys(answer, "boolean"),
        }
        return Task("bound_flags", body, answer)

    def larger() -> Task:
        other, more = near(r, number), r.random() < 0.5
        ask = choose(r, ("Which number is {}?", "Which is the {} number?", "Take the {} one.")).format(
            choose(r, ("larger", "higher", "greater") if more else ("smaller", "lower"))
        )
        best = max(number, other) if more else min(number, other)
        return finish(r, "larger", ask, [str(x) for x in r.sample((number, other), 2)], str(best))

    def span() -> Task:
        low = near(r, number)
        high = low + 1 + int(r.random() * low)
        options = [f"below {low}", f"{low} to {high - 1}", f"{high} or more"]
        truth = options[(number >= low) + (number >= high)]
        return finish(r, "span", "In which range does it lie?", r.sample(options, 3), truth)

    def yes() -> Task:
        bound, more = near(r, number), r.random() < 0.5
        options, value = yes_no(r, (number > bound) == more)
        word = choose(r, ABOVE if more else BELOW).replace("_", " ").replace("exceeds", "beyond")
        return finish(r, "bound_yes_no", f"Is it {word} {bound}?", options, value)

    return Document("numbers", text, {}, {}), [choose(r, (flags, flags, larger, span, yes))() for _ in range(8)]


def any_name(r: Random, split: str) -> str:
    return (person if r.random() < 0.4 else company if r.random() < 0.5 else product)(r, split)


def sized(r: Random) -> int:
    """One to five digits, few more often than many."""
    return 1 + int(r.random() * 10 ** (1 + int(r.random() ** 2 * 5)))


def near(r: Random, number: int) -> int:
    """Another number that is not far: one of the same size, or a round one."""
    for _ in range(9):
        other = max(1, round(number * 4 ** (r.random() * 2 - 1)))
        if r.random() < 0.6:
            unit = 10 ** (len(str(other)) - 1)
            other = max(1, round(other / unit)) * unit
        if other != number:
            return other
    return number + 1
