"""States in sentences what is true of a text with a certain label: as yes/no questions, and as options that are descriptions
(`data/claims.txt`)."""

from random import Random

from banks import bank
from chance import choose
from decisions import capital

BE = {"is", "are", "was", "were", "should", "would", "can"}


def claims(attribute: str, key: str, split: str) -> list[str]:
    section = bank("claims").get(f"{attribute}.{key}")
    return section.take(split) if section else []


def statement(claim: str) -> str:
    return " ".join(x.strip() for x in claim.split("|")).strip()


def base(verb: str) -> str:
    """Returns the base form of a verb: `wait` for `waits`."""
    if verb in ("has", "does"):
        return {"has": "have", "does": "do"}[verb]
    if verb.endswith("ies"):
        return verb[:-3] + "y"
    return verb[:-2] if verb.endswith(("sses", "shes", "ches")) else verb[:-1]


def question(r: Random, claim: str) -> str:
    subject, verb, rest = (x.strip() for x in claim.split("|"))
    head, _, tail = verb.partition(" ")
    x = r.random()
    if x < 0.55 and head in BE:
        return " ".join(x for x in (capital(head), subject, tail, rest) if x) + "?"
    if x < 0.55 and verb.endswith("s"):
        return f"Does {subject} {base(verb)} {rest}".strip() + "?"
    told = statement(claim)
    ways = ("Is it true that {}?", "Does this hold: {}?", "{}. True?", "Would you say that {}?", "True or false: {}")
    return capital(choose(r, ways).format(told))
