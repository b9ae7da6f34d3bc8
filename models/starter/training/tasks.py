"""A task with its answer, in the very words of `lib/prompt/tasks.ts`."""

import json
from dataclasses import dataclass

Span = tuple[int, int]
"""Characters of an answer about which the model has a choice; the rest follows from the grammar."""


@dataclass
class Task:
    skill: str
    """The task as `lib/backend.ts` has it, without its name; a `schema` is shorthand or JSON Schema as a user sends it."""
    body: dict
    answer: dict

    def written(self) -> tuple[str, list[Span]]:
        """The answer as JSON text and what of it the model chooses."""
        open_fields = self.body["type"] == "extract" and "keys" not in self.body and "schema" not in self.body
        return written(self.answer, self.body["type"] == "decide", open_fields)


def dump(value) -> str:
    """As `JSON.stringify`."""
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
    """With `open_fields` the names of fields are the model's own. An answer's text is put in tokens as a whole. The colon before a value belongs to the choice, for with it the token
    is chosen that also opens a string (`lib/grammar`); in front of a decision it does not, as only a string can follow."""
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
                    # That an object stands here: its brace is part of a token with what is before it, or with the quote behind it.
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
                    # Whether a list goes on.
                    spans.append((at - 1, at))
                write(item, at if i else begin)
            put("]")
            spans.append((at - 1, at))
        else:
            put(dump(value))
            # A number ends with what follows it.
            spans.append((begin + 2 if decide else begin, at + (0 if isinstance(value, str) else 1)))

    write(answer, -1)
    return "".join(out), spans
