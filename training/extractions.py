"""Extractions from a document, by keys and by schema."""

from random import Random

from absence import absent
from banks import fields, keys_of, part, phrases_of
from documents import Document
from tasks import Task
from values import choose

EXTRACT = [
    "{}",
    "Find {}.",
    "Extract {}.",
    "{} from the text",
    "Get {}.",
    "Give me {}.",
    "Pull out {}.",
    "Read {} from the text.",
]
WHOLE = ["the details", "all details", "the facts of the text", "the fields", "what the text says", "the data"]


def chosen_slots(r: Random, d: Document, most: int) -> list[str]:
    slots = list(d.facts)
    r.shuffle(slots)
    slots = slots[: 1 + int(r.random() * most)]
    for _ in range(3):
        if r.random() < 0.35 or not slots:
            other = absent(r, d)
            if other and other not in slots and not any(fields()[other].type == fields()[s].type for s in slots):
                slots.append(other)
    r.shuffle(slots)
    return slots


def key_name(r: Random, slot: str, split: str, taken) -> str | None:
    """A key for the slot; a word that could as well mean another fact of the text is left alone by its being taken."""
    key = choose(r, keys_of(slot, split))
    x = r.random()
    if x < 0.06:
        key = key.replace("_", " ")
    elif x < 0.12:
        head, *rest = key.split("_")
        key = head + "".join(p.capitalize() for p in rest)
    elif x < 0.15:
        key = key.upper()
    return None if key in taken else key


def extract_keys(r: Random, d: Document, split: str) -> Task | None:
    answer: dict = {}
    phrases = []
    for slot in chosen_slots(r, d, 6):
        key = key_name(r, slot, split, answer)
        if key and not ambiguous(key, slot, d):
            answer[key] = d.facts.get(slot)
            phrases.append(choose(r, phrases_of(slot, split)))
    if not answer:
        return None
    return Task(
        "extract_keys", {"type": "extract", "instruction": instruction(r, phrases, split), "keys": list(answer)}, answer
    )


def ambiguous(key: str, slot: str, d: Document) -> bool:
    """Whether another fact of the text goes by the same name."""
    plain = key.lower().replace(" ", "_")
    return any(s != slot and plain in fields()[s].keys for s in d.facts)


def instruction(r: Random, phrases: list[str], split: str) -> str:
    what = (
        choose(r, WHOLE)
        if r.random() < 0.4 or len(phrases) > 3
        else ", ".join(phrases[:-1]) + (" and " if len(phrases) > 1 else "") + phrases[-1]
    )
    text = choose(r, part(EXTRACT, split)).format(what)
    return text[0].upper() + text[1:] if r.random() < 0.7 else text


GROUPS = [
    ("buyer", ("customer", "email", "phone", "city")),
    ("party", ("company", "contact", "address")),
    ("item", ("product", "qty", "sku")),
    ("meeting", ("date", "time", "room")),
    ("place", ("address", "postcode", "city", "country")),
    ("payment", ("amount", "due_date")),
    ("source", ("service", "ip", "code")),
]


def extract_schema(r: Random, d: Document, split: str) -> Task | None:
    """Shorthand: flat, with a nested object, or with a list of one object."""
    schema: dict = {}
    answer: dict = {}

    def put(s: dict, a: dict, slot: str):
        key = key_name(r, slot, split, a)
        if key is None or ambiguous(key, slot, d):
            return
        value = d.facts.get(slot)
        number = fields()[slot].type == "int" and r.random() < 0.7
        s[key] = "integer" if number else "string"
        a[key] = int(value) if number and value else value

    nested = [(n, [s for s in slots if s in d.facts]) for n, slots in GROUPS]
    nested = [(n, slots) for n, slots in nested if len(slots) > 1]
    if nested and r.random() < 0.6:
        name, slots = choose(r, nested)
        s, a = {}, {}
        for slot in slots:
            put(s, a, slot)
        if s:
            many = r.random() < 0.2
            schema[name + ("s" if many else "")] = [s] if many else s
            answer[name + ("s" if many else "")] = [a] if many else a
    for slot in chosen_slots(r, d, 3):
        if not nested or slot not in [x for _, ss in nested for x in ss]:
            put(schema, answer, slot)
    if not schema:
        return None
    return Task(
        "extract_schema",
        {
            "type": "extract",
            "instruction": choose(r, ("Extract ", "Find ", "", "Get ")) + choose(r, WHOLE),
            "schema": schema,
        },
        answer,
    )
