"""Prompts token by token as the server makes them: `lib/prompt/tasks.ts` through the model's chat template.

A text of the template and a text of a user are encoded apart, and so are the shared prefix and each branch (`runtime/text`);
an answer is put in tokens as a whole (`lib/grammar`).
"""

import re

from tokenizers import Tokenizer

import paths
from tasks import Task, task_text


def _system() -> str:
    source = (paths.ROOT / "lib/prompt/tasks.ts").read_text(encoding="utf-8")
    body = re.search(r"export const TASK_SYSTEM =\s*(.*?);\n", source, re.S).group(1)
    return "".join(m.group(1) for m in re.finditer(r"'((?:[^'\\]|\\.)*)'", body))


TASK_SYSTEM = _system()
SEPARATOR = "\n\n"


class Encoder:
    def __init__(self, tokenizer: Tokenizer):
        self.t = tokenizer
        self.size = tokenizer.get_vocab_size()
        self.known: dict[str, list[int]] = {}
        self.stop = tokenizer.token_to_id("<|im_end|>")
        self.root = self.ids("<|im_start|>system\n") + self.user(TASK_SYSTEM) + self.ids("<|im_end|>\n<|im_start|>user\n")
        self.tail = self.ids("<|im_end|>\n<|im_start|>assistant\n<think></think>")

    def ids(self, text: str) -> list[int]:
        """Text of the template, of which there is little."""
        if text not in self.known:
            self.known[text] = self.t.encode(text, add_special_tokens=False).ids
        return self.known[text]

    def user(self, text: str) -> list[int]:
        """Text that names no control token (the generator writes none)."""
        return self.t.encode(text, add_special_tokens=False).ids

    def context(self, text: str) -> list[int]:
        return self.user(text + SEPARATOR)

    def branch(self, task: Task) -> tuple[list[int], list[bool]]:
        """The tokens of a task with its answer, and which of them the model has to choose."""
        ids = self.user(task_text(task.body)) + self.tail
        text, spans = task.written()
        answer = self.t.encode(text, add_special_tokens=False)
        chosen = [any(start < b and end > a for a, b in spans) for start, end in answer.offsets]
        return ids + answer.ids, [False] * len(ids) + chosen

    def chat(self, turns) -> tuple[list[int], list[bool]]:
        ids: list[int] = []
        chosen: list[bool] = []
        for i, (role, text) in enumerate(turns):
            head = self.ids(("\n" if i else "") + f"<|im_start|>{role}\n") if i else self.ids(f"<|im_start|>{role}\n")
            body = self.user(text)
            mine = role == "assistant"
            ids += [*head, *body, self.stop]
            chosen += [False] * len(head) + [mine] * (len(body) + 1)
        return ids, chosen
