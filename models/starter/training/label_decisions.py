"""Creates decisions about a document as a whole: topic, urgency, mood, opinion, language, kind, and so on."""

import re
from collections import Counter
from functools import cache
from random import Random

from banks import bank
from chance import choose
from claims import claims, question, statement
from decisions import article, asked, finish, yes_no
from documents import LEVELS, MOOD, OPINIONS, URGENCY, Document
from tasks import Task

SOURCES = {
    "topic": "topics", "urgency": "tone", "mood": "tone", "opinion": "reviews", "news": "news", "level": "filler",
    "language": "languages", "kind": "documents",
}  # fmt: skip
KEYS = {"urgency": URGENCY, "mood": MOOD, "opinion": OPINIONS, "level": LEVELS}


def label_choices(attribute: str) -> list[str]:
    return list(KEYS.get(attribute) or bank(SOURCES[attribute]))


@cache
def close(attribute: str) -> set[frozenset[str]]:
    """Returns the pairs of labels that may both be right."""
    section = bank("close").get(attribute)
    return {frozenset(line.split()) for line in section.items} if section else set()


def others_of(r: Random, attribute: str, truth: str) -> list[str]:
    others = [k for k in label_choices(attribute) if k != truth and frozenset((k, truth)) not in close(attribute)]
    r.shuffle(others)
    return others


WORD = re.compile(r"\b[a-z]{4,}\b")


@cache
def keywords(attribute: str, key: str) -> list[str]:
    """Returns the words that are in several training phrases of a label and hardly elsewhere: labels that the text itself suggests."""
    texts = {
        k: [set(WORD.findall(line)) for line in dict.fromkeys(bank(SOURCES[attribute])[k].take("train"))]
        for k in label_choices(attribute)
    }
    everywhere = Counter(w for lines in texts.values() for words in lines for w in words)
    here = Counter(w for words in texts[key] for w in sorted(words))  # in an order of their own, for ties
    held_out = {w for k in texts for w in bank(SOURCES[attribute])[k].names("test")}
    return [w for w, n in here.most_common(60) if n > 2 and n / everywhere[w] > 0.6 and w not in held_out][:16]


FRAMES = {
    "topic": ("about {}", "a message about {}", "it concerns {}", "{} team", "{} department", "a question of {}", "the {} desk", "forward to {}"),
    "news": ("about {}", "an article on {}", "news on {}", "{} section", "the {} desk", "a story about {}"),
    "kind": ("{}", "it is {}", "the text is {}"),
}  # fmt: skip


def names(r: Random, attribute: str, keys: list[str], split: str) -> list[str]:
    """Returns one wording for each key, all in the same style."""
    source = bank(SOURCES[attribute])
    plain = lambda k: choose(r, source[k].names(split))
    x = r.random()
    if x < 0.2 and all(claims(attribute, k, split) for k in keys):
        return [statement(choose(r, claims(attribute, k, split))) for k in keys]
    if (
        x < 0.35
        and split == "train"
        and attribute in ("topic", "news", "mood")
        and all(keywords(attribute, k) for k in keys)
    ):
        return [choose(r, keywords(attribute, k)) for k in keys]
    if x < 0.45 and attribute in FRAMES:
        frame = choose(r, FRAMES[attribute])
        return [frame.format(article(plain(k)) if attribute == "kind" else plain(k)) for k in keys]
    found = [plain(k) for k in keys]
    if x > 0.92:
        return [n.capitalize() for n in found]
    if x > 0.88:
        return [n.upper() for n in found]
    if x > 0.85:
        return [n.replace(" ", "_") for n in found]
    return found


def codes(r: Random, count: int) -> list[str]:
    """Returns options that have no meaning without the instruction that explains them."""
    start = choose(r, ("A", "1", "a", "opt1", "T1", "Q1", "cat_1"))
    return [start[:-1] + chr(ord(start[-1]) + i) for i in range(count)]


def decide_label(r: Random, d: Document, split: str) -> Task | None:
    attributes = [a for a in d.labels if a in SOURCES]
    if len(attributes) > 1 and "kind" in attributes and r.random() < 0.8:
        attributes.remove("kind")
    attribute = choose(r, attributes)
    truth = d.labels[attribute]
    others = others_of(r, attribute, truth)
    x = r.random()
    # More options teach more with the same number of tokens.
    few = r.random() if split == "test" else 1.0
    if x < (0.3 if split == "test" else 0.22):
        return label_yes_no(r, d, attribute, others[0], split)
    most = min(len(others), 11)
    count = min(most, 1 + int(r.random() * few * 11)) if most > 3 else 1 + int(r.random() * most)
    keys = [truth, *others[:count]]
    found = names(r, attribute, keys, split)
    if len(set(found)) < len(found):
        return None
    named = dict(zip(keys, found))
    r.shuffle(keys)
    options = [named[k] for k in keys]
    ask = asked(r, attribute, split)
    if 0.3 < x < 0.36 and len(keys) < 9:
        ids = codes(r, len(keys))
        glue, mean = choose(r, ("; ", ", ", ". ")), choose(r, (" = ", ": ", " means ", " is "))
        told = glue.join(i + mean + o for i, o in zip(ids, options))
        return finish(r, f"{attribute}_code", ask, ids, ids[keys.index(truth)], told)
    if 0.36 < x < 0.40 and len(others) > count + 1:
        other = choose(r, ("other", "something else", "none of these", "Other"))
        if x < 0.38:
            options[keys.index(truth)] = names(r, attribute, [others[count]], split)[0]
        if other in options or len(set(options)) < len(options):
            return None
        return finish(r, f"{attribute}_other", ask, [*options, other], other if x < 0.38 else named[truth])
    return finish(r, attribute, ask, options, named[truth], reason=because(d, attribute))


def because(d: Document, attribute: str) -> str | None:
    return f"The text says: {d.evidence[attribute]}" if attribute in d.evidence else None


def label_yes_no(r: Random, d: Document, attribute: str, other: str, split: str) -> Task:
    truth = d.labels[attribute]
    right = r.random() < 0.5
    key = truth if right else other
    options, value = yes_no(r, right)
    known = claims(attribute, key, split)
    if known and r.random() < 0.55:
        return finish(
            r, f"{attribute}_yes_no", question(r, choose(r, known)), options, value, reason=because(d, attribute)
        )
    wording = choose(r, bank(SOURCES[attribute])[key].names(split))
    if attribute in ("topic", "news"):
        ask = choose(
            r,
            (
                "Is this about {}?",
                "Does it belong to: {}?",
                "Would you label it “{}”?",
                "Does “{}” describe it?",
                "Is it about {}?",
                "Topic: {}?",
            ),
        )
    elif attribute == "kind":
        wording = article(wording)
        ask = choose(r, ("Is this {}?", "Is the text {}?", "Would you call this {}?", "Do we have {} here?"))
    elif attribute == "language":
        ask = choose(r, ("Is it written in {}?", "Is this {}?", "Is the language {}?"))
    else:
        ask = choose(r, ("Is it {}?", "Does “{}” describe it?", "Would you call it {}?", "Is “{}” right?"))
    return finish(r, f"{attribute}_yes_no", ask.format(wording), options, value, reason=because(d, attribute))
