"""A task with its answer, in exactly the words of `lib/prompt/tasks.ts`."""

import json
from dataclasses import dataclass

Span = tuple[int, int]
"""Range of characters of an answer in which the model has a choice; the rest is forced by the grammar."""


@dataclass
class Task:
    skill: str
    """The task in the form of `lib/backend.ts`, without its name; a `schema` is shorthand or JSON Schema, as a user sends it."""
    body: dict
    answer: dict

    def written(self) -> tuple[str, list[Span]]:
        """Returns the answer as JSON text, and the ranges that the model chooses."""
        open_fields = self.body["type"] == "extract" and "keys" not in self.body and "schema" not in self.body
        return written(self.answer, self.body["type"] == "decide", open_fields)


def dump(value) -> str:
    """Returns JSON text as `JSON.stringify` writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def task_text(body: dict) -> str:
    if body["type"] == "decide":
        lines = [f"Question: {body['question']}"]
        if "options" in body:
            lines.append(f"Options: {dump(body['options'])}")
        if "instruction" in body:
            lines.append(f"Instruction: {body['instruction']}")
    else:
        lines = [f"Extract: {body['instruction']}"]
        if "keys" in body:
            lines.append(f"Keys: {dump(body['keys'])}")
        if "schema" in body:
            lines.append(f"Schema: {dump(body['schema'])}")
    return "\n".join(lines)


def written(answer: dict, decide: bool, open_fields: bool = False) -> tuple[str, list[Span]]:
    """Returns an answer as JSON text, and the ranges that the model chooses. With `open_fields` the model chooses the names of the fields,
    too. The text is tokenized as a whole. The colon before a value is part of the choice, because the chosen token may contain it
    together with the quote that opens a string (`lib/grammar`); in a decision it is not, because only a string can follow."""
    out: list[str] = []
    spans: list[Span] = []
    at = 0

    def put(text: str):
        nonlocal at
        out.append(text)
        at += len(text)

    def write(value, begin: int):
        if isinstance(value, dict):
            for i, (key, item) in enumerate(value.items()):
                put("{" if i == 0 else ",")
                if i == 0 and begin >= 0:
                    # The choice of an object: its brace is part of a token with the character before it, or with the quote after it.
                    spans.append((begin, max(begin + 2, at)))
                put(dump(key))
                if open_fields:
                    spans.append((at - len(dump(key)) - 1, at))
                start = at
                put(":")
                write(item, start)
            put("}")
        elif isinstance(value, list):
            put("[")
            for i, item in enumerate(value):
                if i:
                    put(",")
                    # The choice whether the list continues.
                    spans.append((at - 1, at))
                write(item, at if i else begin)
            put("]")
            spans.append((at - 1, at))
        else:
            put(dump(value))
            # A number ends only with the character after it.
            spans.append((begin + 2 if decide else begin, at + (0 if isinstance(value, str) else 1)))

    write(answer, -1)
    return "".join(out), spans
