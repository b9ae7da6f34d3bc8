"""Exercises in comparing numbers and dates that belong to names."""

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
    """Creates one of this file's exercises. Those that prepare for `comparison` are drawn more often."""
    return choose(r, (bounds, pairs, pairs, pairs, pairs, comparison))(r, split)


def comparison(r: Random, split: str) -> tuple[Document, list[Task]]:
    """Creates a text of numbers that belong to names, with questions: which one has more, less, is first, is last, or exceeds a bound."""
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
    """Creates a text with one number, and many bounds to compare it with; an answer contains several, because comparing numbers is learned
    slowly."""
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


MORE_OR_LESS = {
    "cost": ("cheaper", "more expensive"),
    "points": ("lower in points", "higher in points"),
    "age": ("younger", "older"),
    "weight": ("lighter", "heavier"),
    "minutes": ("quicker", "slower"),
}
"""Maps a unit of `UNITS` to the words for having less and for having more."""
ORDINALS = ("first", "second", "third")


def pairs(r: Random, split: str) -> tuple[Document, list[Task]]:
    """Creates a text of two numbers, sometimes three, that belong to names. Tasks first ask which number is larger (`order`), then whose it
    is."""
    count = 2 if r.random() < 0.8 else 3
    names: list[str] = []
    while len(names) < count:
        name = any_name(r, split)
        if name not in names:
            names.append(name)
    if r.random() < 0.6:
        numbers = r.sample(range(1, choose(r, (10, 10, 30, 100))), len(names))
    else:
        numbers = [sized(r)]
        while len(numbers) < len(names):
            other = near(r, numbers[0])
            if other not in numbers:
                numbers.append(other)
    unit = choose(r, UNITS)
    less, more = MORE_OR_LESS[unit[3]]
    said = choose(r, (("{} " + unit[0], ". "), ("{} " + unit[0], " and "), ("{}: {}", "\n"), ("{} ({})", ", ")))
    text = said[1].join(said[0].format(n, x) for n, x in zip(names, numbers)) + "."
    low, high = (names[numbers.index(f(numbers))] for f in (min, max))

    def which() -> Task:
        down = r.random() < 0.5
        ask = choose(r, ("Which is the {}?", "Who or what is {}?", "Name the {}.")).format(unit[1 if down else 2])
        if r.random() < 0.35:
            # An easier step before it: options that contain their numbers.
            told = {n: f"{n} ({x})" for n, x in zip(names, numbers)}
            return finish(r, "whose_told", ask, r.sample([*told.values()], len(told)), told[low if down else high])
        return finish(r, "whose", ask, r.sample(names, len(names)), low if down else high)

    def one_or_other() -> Task:
        two, down = r.sample(range(len(names)), 2), r.random() < 0.5
        a, b = (names[i] for i in two)
        ask = choose(r, ("Which is {}, {} or {}?", "{}: {} or {}?")).format(less if down else more, a, b)
        return finish(r, "whose", ask, [a, b], a if (numbers[two[0]] < numbers[two[1]]) == down else b)

    def yes() -> Task:
        two, down = r.sample(range(len(names)), 2), r.random() < 0.5
        options, value = yes_no(r, (numbers[two[0]] < numbers[two[1]]) == down)
        ask = choose(r, ("Is {1} {0} than {2}?", "{1} is {0} than {2}: right?"))
        return finish(r, "whose_yes_no", ask.format(less if down else more, *(names[i] for i in two)), options, value)

    def least_and_most() -> Task:
        keys = r.sample(("least", "smallest", "lowest", "most", "largest", "highest"), 2 + int(r.random() * 3))
        answer = {k: low if k in ("least", "smallest", "lowest") else high for k in keys}
        body = {"type": "extract", "instruction": f"Who or what has the least or most: {unit[3]}.", "keys": keys}
        return Task("whose_keys", body, answer)

    def order() -> Task:
        answer = {}
        for _ in range(3 + int(r.random() * 4)):
            a, b = r.sample(range(len(names)), 2)
            up = r.random() < 0.5
            word = choose(r, ABOVE if up else BELOW)
            answer[f"{ORDINALS[a]}_{word}_{ORDINALS[b]}"] = (numbers[a] > numbers[b]) == up
        body = {
            "type": "extract",
            "instruction": f"The {unit[3]}, in order.",
            "schema": dict.fromkeys(answer, "boolean"),
        }
        return Task("order_flags", body, answer)

    makers = (which, which, one_or_other, yes, least_and_most, order, order, order)
    return Document("numbers", text, {}, {}), [choose(r, makers)() for _ in range(8)]


def any_name(r: Random, split: str) -> str:
    return (person if r.random() < 0.4 else company if r.random() < 0.5 else product)(r, split)


def sized(r: Random) -> int:
    """Draws a number of one to five digits, more often of few."""
    return 1 + int(r.random() * 10 ** (1 + int(r.random() ** 2 * 5)))


def near(r: Random, number: int) -> int:
    """Draws another number close to this one: one of the same size, or a round one."""
    for _ in range(9):
        other = max(1, round(number * 4 ** (r.random() * 2 - 1)))
        if r.random() < 0.6:
            unit = 10 ** (len(str(other)) - 1)
            other = max(1, round(other / unit)) * unit
        if other != number:
            return other
    return number + 1
