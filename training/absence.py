"""What a document surely does not say."""

from random import Random

from banks import fields
from documents import Document
from values import choose


def absent(r: Random, d: Document) -> str | None:
    """A field that the text surely lacks: none of its type stands in it."""
    present = {fields()[s].type for s in d.facts}
    free = [
        s
        for s, f in fields().items()
        if f.type not in present and not (f.type in RELATED and present & RELATED[f.type])
    ]
    return choose(r, free) if free else None


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
