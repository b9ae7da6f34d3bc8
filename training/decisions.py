"""Decisions about a document: its attributes, what stands in it, which value is which."""

from random import Random

import values
from absence import absent
from banks import bank, fields, part, phrases_of
from documents import MOOD, URGENCY, Document
from tasks import Task
from values import choose

QUESTIONS = {
    "topic": [
        "What is the message about?",
        "Which category fits?",
        "Which topic does it belong to?",
        "What does the writer want help with?",
        "Pick the right category.",
        "Which team should handle this?",
        "Route this message.",
        "What is the main issue?",
        "What is the intent of the writer?",
        "Which label fits best?",
        "Where should this be forwarded?",
        "What kind of request is it?",
    ],
    "urgency": [
        "How urgent is it?",
        "What is the priority?",
        "Which priority should it get?",
        "How soon is an answer needed?",
        "Pick the urgency.",
        "How pressing is this?",
        "Urgency?",
        "Priority of the message?",
    ],
    "mood": [
        "How does the writer feel?",
        "What is the mood of the writer?",
        "What is the tone of the message?",
        "Which emotion is shown?",
        "How does the customer sound?",
        "Tone?",
        "What feeling does the text express?",
    ],
    "opinion": [
        "What is the sentiment?",
        "Is the review positive or negative?",
        "How does the author rate it?",
        "What does the author think of it?",
        "Sentiment of the review?",
        "Is the writer content?",
        "Which opinion is expressed?",
        "How good is the rating?",
    ],
    "news": [
        "What is the article about?",
        "Which section of the newspaper does it belong to?",
        "Topic of the text?",
        "Which subject is covered?",
        "What is the news about?",
        "Pick a heading for it.",
        "Which theme fits?",
        "Under which heading would you file this?",
    ],
    "level": [
        "How severe is the log line?",
        "Which log level is it?",
        "What kind of event was logged?",
        "How serious is this entry?",
        "Severity?",
    ],
    "language": [
        "Which language is the text written in?",
        "What language is this?",
        "Language of the text?",
        "In which language does the writer write?",
        "Detect the language.",
        "Name the language.",
    ],
    "kind": [
        "What kind of text is this?",
        "What type of document is it?",
        "Which kind of document is this?",
        "Classify the document.",
        "What is this text?",
        "Document type?",
    ],
}
SOURCES = {
    "topic": "topics",
    "urgency": "tone",
    "mood": "tone",
    "opinion": "reviews",
    "news": "news",
    "level": "filler",
    "language": "languages",
    "kind": "documents",
}
KEYS = {
    "urgency": URGENCY,
    "mood": MOOD,
    "opinion": ("positive", "negative", "mixed"),
    "level": ("ERROR", "WARN", "INFO", "DEBUG"),
}
YES_NO = [["yes", "no"], ["no", "yes"], ["Yes", "No"], ["true", "false"], ["No", "Yes"], ["false", "true"]]
INSTRUCTIONS = [
    "Choose exactly one.",
    "Pick the best fit.",
    "Answer with one of the options.",
    "Be careful.",
    "Think of what matters most.",
    "If unsure, take the most likely one.",
    "Read the whole text.",
]
CLOSE = {
    "topic": {
        frozenset(p)
        for p in (
            ("return", "damage"),
            ("complaint", "praise"),
            ("account", "security"),
            ("account", "privacy"),
            ("product", "damage"),
            ("technical", "damage"),
            ("billing", "return"),
        )
    }
}


def label_choices(attribute: str) -> list[str]:
    return list(KEYS.get(attribute) or bank(SOURCES[attribute]))


def yes_no(r: Random, truth: bool) -> tuple[list[str], str]:
    options = choose(r, YES_NO)
    positive = next(o for o in options if o.lower() in ("yes", "true"))
    return options, positive if truth else next(o for o in options if o != positive)


def finish(r: Random, skill: str, question: str, options, value: str) -> Task:
    body = {"type": "decide", "question": question}
    if options is not None:
        body["options"] = options
    if r.random() < 0.08:
        body["instruction"] = choose(r, INSTRUCTIONS)
    return Task(skill, body, {"value": value})


def ask(r: Random, split: str, attribute: str) -> str:
    question = choose(r, part(QUESTIONS[attribute], split))
    return question if r.random() < 0.85 else question.lower().rstrip("?.") + choose(r, ("?", "", "?"))


def decide_label(r: Random, d: Document, split: str) -> Task:
    attributes = [a for a in d.labels if a in QUESTIONS]
    if len(attributes) > 1 and "kind" in attributes and r.random() < 0.8:
        attributes.remove("kind")
    attribute = choose(r, attributes)
    truth = d.labels[attribute]
    source = bank(SOURCES[attribute])
    close = CLOSE.get(attribute, set())
    others = [k for k in label_choices(attribute) if k != truth and frozenset((k, truth)) not in close]
    r.shuffle(others)
    name = lambda key: choose(r, source[key].names(split))
    if r.random() < 0.22 and attribute not in ("kind",):
        asked = truth if r.random() < 0.5 else others[0]
        wording = name(asked)
        pattern = choose(
            r,
            ("Is this about {}?", "Does it belong to: {}?", "Would you label it “{}”?", "Does “{}” describe it?")
            if attribute in ("topic", "news")
            else ("Is it {}?", "Does “{}” describe it?", "Would you call it {}?"),
        )
        options, value = yes_no(r, asked == truth)
        return finish(r, f"{attribute}_yes_no", pattern.format(wording), options, value)
    most = min(len(others), 11)
    count = min(most, 1 + int(r.random() * r.random() * 11)) if most > 3 else 1 + int(r.random() * most)
    truth_name = name(truth)
    options = [truth_name] + [name(k) for k in others[:count]]
    if r.random() < 0.1:
        options = [o.capitalize() for o in options]
        truth_name = truth_name.capitalize()
    options = list(dict.fromkeys(options))
    r.shuffle(options)
    return finish(r, attribute, ask(r, split, attribute), options, truth_name)


PRESENCE = [
    "Does the text give {}?",
    "Is {} mentioned?",
    "Does it say {}?",
    "Is there {} in the text?",
    "Can one find {} here?",
    "Is {} stated?",
]
WHAT = ["What is {}?", "Find {}.", "{}?", "Tell me {}.", "Which is {}?", "State {}.", "What does the text give as {}?"]


def decide_presence(r: Random, d: Document, split: str) -> Task | None:
    truth = r.random() < 0.5 and d.facts
    slot = choose(r, list(d.facts)) if truth else absent(r, d)
    if not slot or d.kind in ("review", "news") and fields()[slot].type in ("city", "product"):
        return None
    options, value = yes_no(r, bool(truth))
    return finish(
        r, "presence", choose(r, part(PRESENCE, split)).format(choose(r, phrases_of(slot, split))), options, value
    )


def similar(r: Random, d: Document, slot: str, split: str, count: int) -> list[str]:
    """Wrong answers: values of other slots in the same text, and values of the same type that are not in it."""
    truth, kind = d.facts[slot], fields()[slot].type
    here = [
        v for s, v in d.facts.items() if s != slot and v != truth and (r.random() < 0.6 or fields()[s].type == kind)
    ]
    r.shuffle(here)
    made = [values.TYPES[kind](r, split) for _ in range(count)]
    mixed = here[: count // 2 + 1] + [m for m in made if m not in d.text]
    return list(dict.fromkeys(v for v in mixed if v != truth))[:count]


def decide_value(r: Random, d: Document, split: str) -> Task | None:
    slot = choose(r, list(d.facts))
    truth, phrase = d.facts[slot], choose(r, phrases_of(slot, split))
    x = r.random()
    if x < 0.25:
        wrong = similar(r, d, slot, split, 1)
        if not wrong:
            return None
        right = r.random() < 0.5
        options, value = yes_no(r, right)
        shown = truth if right else wrong[0]
        return finish(
            r,
            "value_yes_no",
            choose(
                r,
                part(
                    [
                        "Is {} {}?",
                        "Is {1} {0}?",
                        "Does the text give {} as {}?",
                        "Is it right that {} is {}?",
                        "{}: is it {}?",
                        "{0} = {1}?",
                    ],
                    split,
                ),
            ).format(phrase, shown),
            options,
            value,
        )
    question = choose(r, part(WHAT, split)).format(phrase)
    question = question[0].upper() + question[1:]
    if x < 0.5:
        return finish(r, "value_free", question, None, truth)
    options = [truth, *similar(r, d, slot, split, 1 + int(r.random() * 5))]
    if len(options) < 2:
        return None
    r.shuffle(options)
    return finish(r, "value", question, options, truth)
