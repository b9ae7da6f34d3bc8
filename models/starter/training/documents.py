"""Creates documents: templates filled with values and phrases, together with what is true of the result."""

import re
from dataclasses import dataclass, field
from random import Random

import values
from banks import bank, fields
from chance import choose
from names import email, person

CHOICE = re.compile(r"\[([^\[\]]*\|[^\[\]]*)\]")
SLOT = re.compile(r"\{(\w+)\}")


@dataclass
class Document:
    kind: str
    text: str
    """Values in the text by slot: what extractions may ask for."""
    facts: dict[str, str] = field(default_factory=dict)
    """Labels of the text by attribute, for decisions: `topic`, `tone`, `opinion`, `news`, `level`, `language`, `kind`."""
    labels: dict[str, str] = field(default_factory=dict)
    """True if each value in the text is next to the name of its field."""
    listed: bool = False
    """Types of values in the text other than those of `facts`."""
    types: set[str] = field(default_factory=set)
    """The line of the text that shows a label, by attribute."""
    evidence: dict[str, str] = field(default_factory=dict)
    """Messages before the text, as role and text; the text itself is the last user message."""
    turns: list[tuple[str, str]] = field(default_factory=list)
    """Share of cases in which training first asks for values that could be confused (`rivals.py`): most wrong answers were the value of
    another person, day or sum in the same text."""
    rivals_first: float = 0.5


class Filler:
    """Fills the slots of one document. The same slot has the same value throughout."""

    def __init__(self, r: Random, split: str, labels: dict[str, str]):
        self.r, self.split, self.labels = r, split, labels
        self.facts: dict[str, str] = {}
        self.used: set[str] = set()
        self.evidence: dict[str, str] = {}
        self.types: set[str] = set()

    def expand(self, template: str) -> str:
        def pick(m):
            options = m.group(1).split("|")
            return choose(self.r, options)

        text = template
        if "[" in text:
            text = CHOICE.sub(pick, text)
        return SLOT.sub(lambda m: self.slot(m.group(1)), text)

    def slot(self, name: str) -> str:
        if name in fields():
            if name not in self.facts:
                self.facts[name] = self.value(name)
            return self.facts[name]
        phrase = getattr(self, f"do_{name.rstrip('23')}", None)
        if phrase:
            return phrase()
        return self.plain(name.removeprefix("filler_").rstrip("2"))

    def value(self, slot: str) -> str:
        kind = fields()[slot].type
        if kind == "email" and self.r.random() < 0.6:
            for who in ("customer", "contact", "colleague"):
                if who in self.facts:
                    return email(self.r, self.split, self.facts[who])
        return values.TYPES[kind](self.r, self.split)

    def plain(self, name: str) -> str:
        r, split = self.r, self.split
        self.types |= ALSO.get(name, {name} & values.TYPES.keys())
        if name == "num":
            return str(2 + int(r.random() * 90))
        if name == "ms":
            return str(3 + int(r.random() * 2000))
        if name == "stamp":
            return f"20{20 + int(r.random() * 9)}-{1 + int(r.random() * 12):02}-{1 + int(r.random() * 28):02}{choose(r, 'T ')}{int(r.random() * 24):02}:{int(r.random() * 60):02}:{int(r.random() * 60):02}"
        if name in ("positive", "negative", "neutral"):
            return choose(r, bank("polarity")[name].take(split))
        if name in values.TYPES:
            return values.TYPES[name](r, split)
        if name == "month":
            return choose(r, bank("words")["month"].items)
        if name == "thing":
            return choose(r, bank("reviews")["thing"].take(split))
        return choose(r, bank("filler")[name].take(split))

    def line(self, source: str, key: str) -> str:
        """Returns a phrase of a section; none is used twice in a document."""
        items = bank(source)[key].take(self.split)
        for _ in range(4):
            line = choose(self.r, items)
            if line not in self.used:
                break
        self.used.add(line)
        return self.expand(line)

    def do_topic(self):
        text = self.evidence["topic"] = self.line("topics", self.labels["topic"])
        return text + " " + self.line("topics", self.labels["topic"]) if self.r.random() < 0.35 else text

    def do_tone(self):
        keys = [self.labels[k] for k in ("urgency", "mood") if k in self.labels]
        self.r.shuffle(keys)
        lines = [self.line("tone", k) for k in keys]
        self.evidence |= {"urgency" if k in URGENCY else "mood": line for k, line in zip(keys, lines)}
        return " ".join(lines)

    def do_opinion(self):
        line = self.evidence["opinion"] = self.line("reviews", self.labels["opinion"])
        return line

    def do_news(self):
        line = self.evidence["news"] = self.line("news", self.labels["news"])
        return line

    def do_event(self):
        return self.line("filler", f"event_{self.labels['level']}")

    def do_level(self):
        return self.labels["level"]

    def do_filler(self):
        return "" if self.r.random() < 0.35 else self.line("filler", "filler")


URGENCY = ("urgent", "normal", "low")
OPINIONS = ("positive", "negative", "mixed")
LEVELS = ("ERROR", "WARN", "INFO", "DEBUG")
MOOD = (
    "angry", "polite", "happy", "worried", "sad", "confused", "disappointed", "grateful", "neutral", "surprised",
    "apologetic", "relieved", "excited",
)  # fmt: skip


COMMON = [
    "ticket", "ticket", "ticket", "ticket", "email", "email", "review", "review", "review", "news", "news", "news",
    "foreign", "order", "invoice", "chat", "chat", "log", "calendar", "job_ad", "product_page", "address", "note",
]  # fmt: skip
"""Kinds of documents that are drawn more often than others."""


def make_document(r: Random, split: str) -> Document:
    kinds = list(bank("documents"))
    kind = choose(r, kinds + COMMON)
    if kind == "foreign" or (kind in ("note", "review") and r.random() < 0.12):
        return foreign(r, split)
    template = choose(r, bank("documents")[kind].take(split))
    labels = {"kind": kind}
    if "{topic}" in template:
        labels["topic"] = choose(r, list(bank("topics")))
    if "{tone}" in template:
        x = r.random()
        if x < 0.65:
            labels["urgency"] = choose(r, URGENCY)
        if x > 0.45:
            labels["mood"] = choose(r, MOOD)
    if "{opinion" in template:
        labels["opinion"] = choose(r, ("positive", "negative", "positive", "negative", "mixed"))
    if "{news" in template:
        labels["news"] = choose(r, list(bank("news")))
    if "{level}" in template or "{event}" in template:
        labels["level"] = choose(r, LEVELS)
    fill = Filler(r, split, labels)
    text = tidy(fill.expand(template))
    facts = {k: v for k, v in fill.facts.items() if v in text}
    # If the same value is in two slots of a text, the right one cannot be distinguished from the wrong one; either is accepted.
    if r.random() < 0.2:
        text = lengthened(r, split, text)
    if r.random() < 0.12:
        text = noise(r, text, facts)
    evidence = {k: line for k, line in fill.evidence.items() if len(line) < 90 and line in text and '"' not in line}
    turns = before(r) if r.random() < 0.03 else []
    types = fill.types | {fields()[s].type for s in fill.facts if s not in facts}
    types |= {kind for kind, words in IN_WORDS.items() if words.search(text)}
    return Document(kind, text, facts, labels, types=types, evidence=evidence, turns=turns)


ALSO = {
    "num": {"int"}, "ms": {"int", "duration"}, "stamp": {"date", "time"}, "month": {"date"}, "thing": {"product"},
}  # fmt: skip
"""Types for which a value of another type could be taken."""
IN_WORDS = {
    "duration": re.compile(r"\b(minute|hour|day|week|month|year|night)s?\b"),
    "date": re.compile(r"\b(today|tomorrow|yesterday|next|last) ?(week|month|year|spring|summer|autumn|winter)?\b"),
    "time": re.compile(r"\b(noon|midnight|o'clock|morning|evening)\b"),
    "weekday": re.compile(r"\b(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b"),
    "int": re.compile(r"\b(two|three|four|five|six|seven|eight|nine|ten|twice)\b"),
}
"""Patterns of values that are part of the phrases themselves."""


def before(r: Random) -> list[tuple[str, str]]:
    """Returns two messages of small talk before a text; none if they contain slots."""
    said = [choose(r, bank("filler")["filler"].items) for _ in range(2)]
    return [("user", said[0]), ("assistant", said[1])] if "{" not in "".join(said) else []


OTHER_SCRIPTS = {"Russian", "Greek", "Chinese", "Japanese", "Arabic"}
"""Languages that are recognised by their script alone. Their letters take several tokens each, so a few examples are enough."""


def foreign(r: Random, split: str) -> Document:
    key = choose(r, list(bank("languages")))
    if key in OTHER_SCRIPTS and r.random() < 0.6:
        key = choose(r, list(bank("languages")))
    items = bank("languages")[key].take(split)
    lines = [choose(r, items) for _ in range(1 if key in OTHER_SCRIPTS else 1 + int(r.random() * 3))]
    facts = {}
    if r.random() < 0.4:
        facts["customer"] = person(r, split)
        lines.append(facts["customer"])
    return Document("foreign", " ".join(dict.fromkeys(lines)), facts, {"language": key})


def tidy(text: str) -> str:
    text = re.sub(r" {2,}", " ", text)
    text = re.sub(r" *\n *", "\n", text)
    return text.strip()


def lengthened(r: Random, split: str, text: str) -> str:
    """Returns the text surrounded by irrelevant sentences, up to about 400 words."""
    lines = bank("filler")["padding"].items
    count = 2 + int(r.random() ** 2 * (len(lines) - 2))
    around = r.sample(lines, min(count, len(lines)))
    cut = int(r.random() * (len(around) + 1))
    before, after = " ".join(around[:cut]), " ".join(around[cut:])
    gap = choose(r, ("\n\n", "\n", " "))
    return gap.join(x for x in (before, text, after) if x)


def noise(r: Random, text: str, facts: dict[str, str]) -> str:
    """Adds typing errors, or lower-cases words, outside of values and their lines."""
    mode = r.random()
    words = text.split(" ")
    kept = " ".join(facts.values())
    for i, w in enumerate(words):
        if not w.isalpha() or w in kept or len(w) < 4:
            continue
        if mode < 0.5 and r.random() < 0.12:
            j = 1 + int(r.random() * (len(w) - 2))
            words[i] = choose(r, (w[:j] + w[j + 1 :], w[:j] + w[j + 1] + w[j] + w[j + 2 :], w[:j] + w[j] + w[j:]))
        elif mode >= 0.5:
            words[i] = w.lower()
    return " ".join(words)
