"""Creates questions about a text with answers in a sentence: hand-written ones, and ones made from what is known about judged texts and
documents."""

import re
from random import Random

from absence import absent
from banks import fields, phrases_of
from chance import choose
from conversations import Question, written_talk
from documents import make_document
from judged import judged, swapped
from value_decisions import asks

Questions = tuple[str, list[Question]]
"""A text, and the questions about it."""


def questions(r: Random, split: str) -> Questions:
    x = r.random()
    return (written_talk if x < 0.45 else of_judged if x < 0.8 else of_document)(r, split)


ASK = ("What is {}?", "what is {}", "Tell me {}.", "Please give me {}.", "{}?", "What does the text give as {}?")
ASK_BY_TYPE = {
    "person": ("Who is {}?", "who is {}", "What is the name of {}?", "Tell me who {} is."),
    "amount": ("How much is {}?", "how much is {}"),
}
LONG = 150
"""Length in characters from which a sentence is not repeated in the reasoning."""
SENTENCE = re.compile(r"[^.!?\n]*(?:[.!?](?=\S)[^.!?\n]*)*")
QUESTION = re.compile(r"(who|when|where|which|what|whose|why|how)\b", re.I)
"""Matches a decision's question that asks for more than yes or no."""
SPOKEN = re.compile(r"[A-Za-z][a-z']+( [A-Za-z0-9'-]+)*")
"""Matches a field's name that people would say, unlike `order_id`."""
UNFINISHED = (" for", " of", " by", " to", " from", " at", " with", " on", " in")


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def full(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."


def thought(text: str, value: str) -> str:
    """Returns the sentence or line of the text that contains a value; only the value if that is long."""
    place = text.index(value)
    around = next(m for m in SENTENCE.finditer(text) if m.end() >= place + len(value))
    short = around.start() <= place and len(around[0]) < LONG
    return full(f"The text says: {around[0].strip()}" if short else f"I find {value} in the text")


def about(r: Random, text: str, name: str, value: str | None, kind: str = "") -> Question:
    """Creates the question what a text states under a name, such as `the order number` or `who pays`. `kind` is the value's type."""
    if asks(name):
        ask, answer = f"{name}?", f"The text says {value}"
    else:
        ways = ASK_BY_TYPE[kind] if kind in ASK_BY_TYPE and r.random() < 0.7 else ASK
        ask, answer = choose(r, ways).format(name), f"{name} is {value}"
    if value is None:
        nowhere = f"I look for {name} in the text and do not find it."
        return Question(capital(ask), f"The text does not say {name}.", nowhere)
    return Question(capital(ask), full(capital(answer)), thought(text, value))


def of_document(r: Random, split: str) -> Questions:
    d = make_document(r, split)
    if not d.facts:
        return of_document(r, split)
    found = [about(r, d.text, choose(r, phrases_of(s, split)), d.facts[s], fields()[s].type) for s in d.facts]
    lacking = absent(r, d)
    if lacking and lacking not in d.facts:
        found.append(about(r, d.text, choose(r, phrases_of(lacking, split)), None))
    return d.text, found


def decided(text: str, ask: str, value: str) -> Question:
    """Creates a question without options from a decision between options."""
    if value in text:
        return Question(ask, full(f"The text says {value}"), thought(text, value))
    return Question(ask, full(f"I would say {value}"), f"Of what the text says {value} comes nearest.")


def of_judged(r: Random, split: str) -> Questions:
    """Creates questions about a judged text, from its fields with names that people would say, and from decisions that ask for more than
    yes or no."""
    original = choose(r, judged(split))
    t = swapped(r, split, original)
    found = []
    for (names, value), (_, before) in zip(t.fields, original.fields):
        spoken = [n for n in names if SPOKEN.fullmatch(n) and not n.endswith(UNFINISHED)]
        if spoken:
            name = choose(r, spoken)
            name = name if name.startswith("the ") or asks(name) else f"the {name}"
            found.append(about(r, t.text, name, value, original.swaps.get(before or "", "")))
    for wordings, options, right in t.decisions:
        asked = [w for w in wordings if QUESTION.match(w)]
        value = options[right][0]
        if asked and value.lower() not in ("yes", "no"):
            found.append(decided(t.text, choose(r, asked), value))
    return (t.text, found) if found else of_judged(r, split)
