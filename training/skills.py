"""Short exercises apart from documents: copying, binding, comparing, and what words mean. Training begins with these."""

from random import Random

import values
from banks import bank, part
from decisions import finish, yes_no
from documents import Document
from tasks import Task
from values import choose

Exercise = tuple[Document, list[Task]]


def records(r: Random, split: str) -> Exercise:
    """Lines of name and value in many notations; the names are asked for as they stand, some that are not there too."""
    kind = choose(r, ("word", "word", *values.TYPES))
    make = (lambda: values.invented(r, split)) if kind == "word" else (lambda: values.TYPES[kind](r, split))
    nouns = [w for s in bank("classes").values() for w in s.take(split)]
    pool = list(
        dict.fromkeys(choose(r, nouns) if r.random() < 0.6 else values.invented(r, split).lower() for _ in range(9))
    )
    names, others = pool[: 2 + int(r.random() * 5)], pool[7:] or ["zero"]
    facts = {n: make() if r.random() < 0.7 else values.TYPES[choose(r, list(values.TYPES))](r, split) for n in names}
    pattern, glue = choose(
        r,
        (
            (("{}: {}"), "\n"),
            ("{} = {}", "\n"),
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
    for _ in range(6):
        name = choose(r, names)
        x = r.random()
        if x < 0.45:
            wanted = {n: facts[n] for n in r.sample(names, min(len(names), 1 + int(r.random() * 6)))}
            if r.random() < 0.3:
                wanted[others[0]] = None
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
        elif x < 0.7:
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
        elif x < 0.85:
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


SENTENCES = [
    "We talked about the {}.",
    "She drew a {}.",
    "It is about {}.",
    "There was a {} in the story.",
    "I have been thinking of the {}.",
    "The word of the day is {}.",
    "He wrote {} on the board.",
    "They sell {}.",
    "Our theme today: {}",
    "{}",
    "My son asked me about {} yesterday.",
    "The book has a chapter on {}.",
]
CLASS_QUESTIONS = [
    "What kind of thing is it?",
    "What is {} an example of?",
    "Which group does {} belong to?",
    "What does the text mention?",
    "Pick the group.",
    "What is {}?",
    "Which of these is it about?",
    "Kind of thing?",
]


def word_classes(r: Random, split: str) -> Exercise:
    """Which group a word belongs to, the group's name not being in the text. Test data asks for known words in unknown wordings."""
    classes = list(bank("classes").values())
    here = r.sample(classes, 1 + int(r.random() * 3))
    words = {s.key: choose(r, s.take("train")) for s in here}
    text = " ".join(choose(r, part(SENTENCES, split)).format(w) for w in words.values())
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
        questions = [q for q in part(CLASS_QUESTIONS, split) if len(here) == 1 or "{}" in q] or [
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


def polarity(r: Random, split: str) -> Exercise:
    """Praise and blame in one word each, about several things."""
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


def comparison(r: Random, split: str) -> Exercise:
    """Numbers that belong to names: which is more, less, first, last, above a bound."""
    names = list(
        dict.fromkeys(
            (values.person if r.random() < 0.4 else values.company if r.random() < 0.5 else values.product)(r, split)
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
    for _ in range(5):
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


EXERCISES = [(records, 5), (word_classes, 2.2), (polarity, 1), (comparison, 1)]


def make_exercise(r: Random, split: str) -> Exercise:
    maker = r.choices([m for m, _ in EXERCISES], [w for _, w in EXERCISES])[0]
    return maker(r, split)
