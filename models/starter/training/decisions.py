"""Code shared by all decisions: composing a task, and yes and no as options."""

from random import Random

from banks import bank
from chance import choose
from tasks import Task

YES_NO = [["yes", "no"], ["no", "yes"], ["Yes", "No"], ["true", "false"], ["No", "Yes"], ["false", "true"]]


def yes_no(r: Random, truth: bool) -> tuple[list[str], str]:
    options = choose(r, YES_NO)
    positive = next(o for o in options if o.lower() in ("yes", "true"))
    return options, positive if truth else next(o for o in options if o != positive)


def finish(
    r: Random, skill: str, question: str, options, value: str, instruction: str | None = None, reason: str | None = None
) -> Task:
    """Returns a decide task with its answer. If `reason` is given, the task sometimes asks for a reason, and the answer then contains it."""
    body = {"type": "decide", "question": question}
    answer = {"value": value}
    if options is not None:
        body["options"] = options
    x = r.random()
    if reason and options is not None and not instruction and x < 0.05:
        body["instruction"] = choose(r, bank("questions")["reason"].items)
        answer["reason"] = reason
    elif instruction or x < 0.1:
        body["instruction"] = instruction or choose(r, bank("questions")["instruction"].items)
    return Task(skill, body, answer)


def asked(r: Random, what: str, split: str) -> str:
    """Returns a wording of the question, sometimes carelessly written."""
    question = choose(r, bank("questions")[what].take(split))
    return question if r.random() < 0.85 else question.lower().rstrip("?.") + choose(r, ("?", "", "?"))


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def article(noun: str) -> str:
    if (
        noun.startswith(("a ", "an ", "the "))
        or noun.split(" ")[0].endswith("s")
        or noun.endswith((" data", "details"))
    ):
        return noun
    return ("an " if noun[0].lower() in "aeiou" else "a ") + noun
