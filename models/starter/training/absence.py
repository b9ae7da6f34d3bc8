"""Finds fields that a document certainly does not state."""

from random import Random

from banks import fields
from chance import choose
from documents import Document


def absent(r: Random, d: Document) -> str | None:
    """Returns a field that the text certainly lacks: the text has no value of its type, or it names all its fields and this is none of
    them."""
    present = {fields()[s].type for s in d.facts} | d.types
    related = set().union(*(RELATED_TO.get(t, set()) for t in present))
    if d.listed and r.random() < 0.25:
        free = [s for s in OWN_NAME if s not in d.facts and fields()[s].type in present]
        if free:
            return choose(r, free)
    free = [s for s, f in fields().items() if f.type not in present and f.type not in related]
    return choose(r, free) if free else None


OWN_NAME = (
    "order_id", "invoice_id", "ticket_id", "tracking_id", "request_id", "sku", "due_date", "order_date", "start_date",
    "salary", "amount2", "manager", "author",
)  # fmt: skip
"""Slots whose value cannot be meant by the name of another slot."""


RELATED = {
    "int": {"amount", "duration", "date", "time"},
    "duration": {"date", "time"},
    "weekday": {"date"},
    "date": {"weekday", "time"},
    "time": {"date"},
    "country": {"address", "city"},
    "address": {"city"},
    "city": {"address", "country", "company"},
    "company": {"email", "url", "product"},
    "postcode": {"id", "address"},
    "id": {"postcode"},
    "username": {"person", "email"},
    "person": {"username", "email"},
    "url": {"email"},
    "room": {"address"},
    "product": {"service"},
    "amount": {"int"},
    "percent": {"int"},
    "code": {"id"},
    "job": set(),
}
RELATED_TO: dict[str, set[str]] = {}
"""Maps the type of a value in a text to the types that it could be taken for."""
for kind, near in RELATED.items():
    for other in near:
        RELATED_TO.setdefault(other, set()).add(kind)
