"""Creates extraction tasks about a document: by keys, by shorthand, or by JSON Schema."""

import re
from random import Random

from absence import absent
from banks import bank, fields, keys_of, phrases_of
from chance import choose, early
from decisions import capital
from documents import Document
from label_decisions import SOURCES, names, others_of
from rivals import rivals
from tasks import Task
from value_decisions import plain_number


def chosen_slots(r: Random, d: Document, split: str, most: int, lacking: float) -> list[str]:
    """Returns some slots of the text, and some that it lacks."""
    slots = list(d.facts)
    r.shuffle(slots)
    first = rivals(r, d, split)
    slots.sort(key=lambda s: s not in first)
    slots = slots[: 1 + int(r.random() * most)]
    for _ in range(3):
        if r.random() < lacking or not slots:
            other = absent(r, d)
            if other and other not in slots:
                slots.append(other)
    r.shuffle(slots)
    return slots


DECORATED = ["the_{}", "doc_{}", "given_{}", "stated_{}", "text_{}", "my_{}", "found_{}", "{}_value", "{}_field", "{}_text", "{}_found", "{}_given", "{}_mentioned", "{}_info", "{}_string", "{}_in_text"]  # fmt: skip
"""Patterns of words that programmers add to a name without changing its meaning."""


def key_name(r: Random, d: Document, slot: str, split: str, taken) -> str | None:
    """Returns a key for the slot; None if it is already used, or if it could mean another fact of the text."""
    key = early(r, keys_of(slot, split))
    if any(s != slot and fields()[s].goes_by(key) for s in d.facts):
        return None
    if split == "train" and r.random() < 0.1:
        key = choose(r, DECORATED).format(key)
    x = r.random()
    head, *rest = key.split("_")
    if x < 0.06:
        key = key.replace("_", " ")
    elif x < 0.12:
        key = head + "".join(p.capitalize() for p in rest)
    elif x < 0.14:
        key = key.upper()
    elif x < 0.17:
        key = capital(key.replace("_", " "))
    elif x < 0.19:
        key = key.replace("_", "-")
    return None if key in taken else key


def extract_keys(r: Random, d: Document, split: str) -> Task | None:
    answer: dict = {}
    phrases = []
    for slot in chosen_slots(r, d, split, 6, 0.5 if d.listed else 0.38):
        key = key_name(r, d, slot, split, answer)
        if key:
            answer[key] = d.facts.get(slot)
            phrases.append(early(r, phrases_of(slot, split)))
    if not answer:
        return None
    body = {"type": "extract", "instruction": instruction(r, phrases, split), "keys": list(answer)}
    return Task("extract_keys", body, answer)


def extract_open(r: Random, d: Document, split: str) -> Task | None:
    """Creates an extraction with only an instruction: the fields are those that it names."""
    slots = r.sample(list(d.facts), min(len(d.facts), 1 + int(r.random() * 3)))
    phrases = [choose(r, phrases_of(slot, split)) for slot in slots]
    named = [re.sub(r"[^a-z]+", "_", re.sub(r"^(the|a|an) |'s|'", "", p.lower())).strip("_") for p in phrases]
    if len(set(named)) < len(named) or any(not p.startswith("the ") for p in phrases):
        return None
    what = ", ".join(phrases[:-1]) + (" and " if len(phrases) > 1 else "") + phrases[-1]
    text = choose(r, bank("questions")["extract"].take(split)).format(what)
    return Task(
        "extract_open", {"type": "extract", "instruction": capital(text)}, {n: d.facts[s] for n, s in zip(named, slots)}
    )


def instruction(r: Random, phrases: list[str], split: str) -> str:
    if r.random() < 0.25:
        return choose(r, bank("questions")["whole"].take(split))
    if r.random() < 0.5 or len(phrases) > 3 or not phrases:
        what = choose(r, bank("questions")["whole"].take(split))
    else:
        what = ", ".join(phrases[:-1]) + (" and " if len(phrases) > 1 else "") + phrases[-1]
    text = choose(r, bank("questions")["extract"].take(split)).format(what)
    return capital(text) if r.random() < 0.7 else text


GROUPS = [
    ("buyer", ("customer", "email", "phone", "city")),
    ("customer", ("customer", "email", "phone")),
    ("party", ("company", "contact", "address")),
    ("person", ("contact", "phone", "email", "job")),
    ("item", ("product", "qty", "sku")),
    ("order", ("order_id", "product", "amount", "order_date")),
    ("invoice", ("invoice_id", "amount", "due_date", "date")),
    ("meeting", ("date", "time", "room")),
    ("place", ("address", "postcode", "city", "country")),
    ("payment", ("amount", "due_date")),
    ("job", ("job", "salary", "start_date")),
    ("source", ("service", "ip", "code")),
]


def flag(r: Random, d: Document, split: str) -> tuple[str, bool] | None:
    """Returns a boolean field with its value: whether the text has a value, or whether a label applies to it."""
    attributes = [a for a in d.labels if a in ("topic", "urgency", "mood", "opinion", "news")]
    if attributes and (not d.facts or r.random() < 0.5):
        a = choose(r, attributes)
        right = r.random() < 0.5
        key = d.labels[a] if right else others_of(r, a, d.labels[a])[0]
        wording = re.sub(r"\W+", "_", choose(r, bank(SOURCES[a])[key].names(split)).lower())
        return (wording if r.random() < 0.3 else f"is_{wording}"), right
    right = r.random() < 0.5 and bool(d.facts)
    slot = choose(r, list(d.facts)) if right else absent(r, d)
    if not slot or d.kind in ("review", "news"):
        return None
    return choose(r, ("has_", "mentions_", "gives_", "contains_")) + choose(r, keys_of(slot, split)).lower(), right


def extract_flags(r: Random, d: Document, split: str) -> Task | None:
    """Creates an extraction of several booleans: the cheapest way to learn what a text contains and what it is about."""
    answer: dict[str, bool] = {}
    for _ in range(2 + int(r.random() * 6)):
        found = flag(r, d, split)
        if found and found[0] not in answer:
            answer[found[0]] = found[1]
    if not answer:
        return None
    body = {"type": "extract", "instruction": instruction(r, [], split), "schema": dict.fromkeys(answer, "boolean")}
    return Task("extract_flags", body, answer)


def extract_schema(r: Random, d: Document, split: str) -> Task | None:
    """Creates an extraction by shorthand schema: flat, with a nested object, or with a list of one object; with numbers and booleans."""
    schema: dict = {}
    answer: dict = {}

    def put(s: dict, a: dict, slot: str):
        key = key_name(r, d, slot, split, a)
        if key is None:
            return
        value, kind = d.facts.get(slot), fields()[slot].type
        s[key], a[key] = "string", value
        if kind == "int" and r.random() < 0.7:
            s[key], a[key] = choose(r, ("integer", "number")), int(value) if value else None
        elif kind == "amount" and r.random() < 0.4 and (value is None or plain_number(value) is not None):
            number = plain_number(value) if value else None
            s[key], a[key] = "number", int(number) if number is not None and number == int(number) else number

    nested = [(n, [s for s in slots if s in d.facts]) for n, slots in GROUPS]
    nested = [(n, slots) for n, slots in nested if len(slots) > 1]
    used: tuple[str, ...] | list[str] = ()
    if nested and r.random() < 0.45:
        name, used = choose(r, nested)
        s, a = {}, {}
        for slot in used:
            put(s, a, slot)
        if s:
            many = r.random() < 0.25
            schema[name + ("s" if many else "")] = [s] if many else s
            answer[name + ("s" if many else "")] = [a] if many else a
    for slot in chosen_slots(r, d, split, 4, 0.25):
        if slot not in used:
            put(schema, answer, slot)
    if r.random() < 0.3 and (found := flag(r, d, split)) and found[0] not in answer:
        schema[found[0]], answer[found[0]] = "boolean", found[1]
    if not schema:
        return None
    return Task(
        "extract_schema", {"type": "extract", "instruction": instruction(r, [], split), "schema": schema}, answer
    )


def extract_json_schema(r: Random, d: Document, split: str) -> Task | None:
    """Creates an extraction by a JSON Schema as a user would write it, with `enum` for the labels of the text."""
    properties: dict = {}
    answer: dict = {}
    for attribute in r.sample(sorted(a for a in d.labels if a in SOURCES and a != "level"), min(1, len(d.labels))):
        truth = d.labels[attribute]
        keys = [truth, *others_of(r, attribute, truth)[: 1 + int(r.random() * 3)]]
        found = names(r, attribute, keys, split)
        if len(set(found)) < len(found):
            return None
        options = sorted(found, key=lambda _: r.random())
        name = choose(
            r,
            {
                "topic": ("category", "topic", "team", "intent"),
                "urgency": ("priority", "urgency"),
                "mood": ("mood", "tone", "emotion"),
                "opinion": ("sentiment", "opinion", "rating"),
                "news": ("topic", "section", "subject"),
                "language": ("language", "lang"),
                "kind": ("type", "kind", "document_type"),
            }[attribute],
        )
        properties[name], answer[name] = {"type": "string", "enum": options}, found[0]
    for slot in chosen_slots(r, d, split, 2, 0.15):
        key = key_name(r, d, slot, split, answer)
        if key:
            properties[key], answer[key] = {"type": ["string", "null"]}, d.facts.get(slot)
    if not properties:
        return None
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    # Without an `enum` it would be shown as shorthand (`lib/prompt/tasks.ts`).
    if r.random() < 0.5 and any("enum" in p for p in properties.values()):
        schema["additionalProperties"] = False
    return Task(
        "extract_json_schema", {"type": "extract", "instruction": instruction(r, [], split), "schema": schema}, answer
    )
