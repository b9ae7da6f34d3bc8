"""Exercises in the meaning of phrases: words that a label suggests, and phrases that mean about the same."""

from random import Random

from chance import choose
from claims import claims, statement
from decisions import asked, finish, yes_no
from documents import Document, Filler, tidy
from extractions import extract_flags
from label_decisions import SOURCES, decide_label, label_choices, names, others_of
from tasks import Task

ATTRIBUTES = 3 * ("topic",) + 2 * ("news", "mood", "urgency", "opinion") + ("level",)
"""Attributes, each repeated as often as it is to be drawn."""


def phrase(r: Random, split: str, attribute: str, key: str) -> str:
    fill = Filler(r, split, {})
    source = f"event_{key}" if attribute == "level" else key
    return tidy(fill.line(SOURCES[attribute], source))


def suggested(r: Random, split: str) -> tuple[Document, list[Task]]:
    """Creates one short phrase, and many questions about its labels."""
    labels = {}
    text = []
    for attribute in r.sample(ATTRIBUTES, 1 + (r.random() < 0.35)):
        if attribute in labels:
            continue
        labels[attribute] = choose(r, label_choices(attribute))
        text.append(phrase(r, split, attribute, labels[attribute]))
    d = Document("phrase", " ".join(text), {}, labels)
    tasks = [decide_label(r, d, split) if r.random() < 0.8 else extract_flags(r, d, split) for _ in range(13)]
    return d, [t for t in tasks if t]


def alike(r: Random, split: str) -> tuple[Document, list[Task]]:
    """Creates two or three lines, with questions: which of them mean the same, and which one fits a description or another line."""
    attribute = choose(r, ("topic", "topic", "news", "mood", "opinion", "urgency"))
    keys = label_choices(attribute)
    truth = choose(r, keys)
    others = others_of(r, attribute, truth)
    same = r.random() < 0.5
    here = [truth, truth if same else others[0]]
    lines = [phrase(r, split, attribute, k) for k in here]
    if lines[0] == lines[1]:
        return suggested(r, split)
    text = choose(r, ("{}\n{}", "A: {}\nB: {}", "1. {}\n2. {}", "First: {}\nSecond: {}")).format(*lines)
    tasks = []
    for _ in range(3):
        options, value = yes_no(r, same)
        tasks.append(finish(r, "alike", asked(r, "alike", split), options, value))
    for _ in range(3):
        i = int(r.random() * 2)
        like = phrase(r, split, attribute, here[i])
        if like in lines:
            continue
        if same:
            other = phrase(r, split, attribute, choose(r, others))
            options = [like, other]
            r.shuffle(options)
            tasks.append(finish(r, "alike_phrase", asked(r, "alike_phrase", split), options, like))
        else:
            options = list(lines)
            r.shuffle(options)
            known = claims(attribute, here[i], split)
            shown = choose(r, known) if known and r.random() < 0.4 else None
            label = statement(shown) if shown else choose(r, (like, names(r, attribute, [here[i]], split)[0]))
            tasks.append(finish(r, "alike_line", asked(r, "alike_line", split).format(label), options, lines[i]))
    return Document("lines", text), tasks
