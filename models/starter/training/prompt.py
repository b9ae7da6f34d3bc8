"""Encodes prompts to the same tokens as the server: `lib/prompt/tasks.ts` through the model's chat template.

Texts of the template and texts of a user are encoded separately, and so are the shared prefix and each branch (`runtime/text`);
an answer is tokenized as a whole (`lib/grammar`).
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


FREE = '{"value":"'
"""Text with which the answer to a decision without options begins."""
DECISION = 7.5
"""Weight in the loss of a decision's tokens, which are few compared with those of extractions."""
PLACE, REST = 1.5, 0.3
"""Weight of a value's first two tokens (the first opens it) and of the others: to go on with a copy is easily learned, to find the place is not. Of an option:
of the tokens in which options part, and of those behind."""
ABSENT = 1.2
"""Weight of the choice that a text lacks a value. With more, values are missed that are there: with 4.5 and, since many judged texts ask for what is nearly there, with 2.6
(28 missed, 7 made up of 810) and 1.7 (22 and 7; now 18 and 11). With less, more errors are values that are not there."""

FIRST, SAID = 5.0, 1.0
"""Weights in the loss of the first token of a chat's answer, which decides whether to reason, to greet or to answer, and of the other
tokens."""


class Encoder:
    def __init__(self, tokenizer: Tokenizer):
        self.t = tokenizer
        self.size = tokenizer.get_vocab_size()
        self.known: dict[str, list[int]] = {}
        names = tokenizer.get_vocab()
        self.is_word = [False] * self.size
        for name, token in names.items():
            self.is_word[token] = re.fullmatch("Ġ[a-z]{2,}", name) is not None
        self.stop = tokenizer.token_to_id("<|im_end|>")
        self.root = (
            self.ids("<|im_start|>system\n") + self.user(TASK_SYSTEM) + self.ids("<|im_end|>\n<|im_start|>user\n")
        )
        self.tail = self.ids("<|im_end|>\n<|im_start|>assistant\n<think></think>")

    def ids(self, text: str) -> list[int]:
        """Encodes text of the chat template, of which there is little."""
        if text not in self.known:
            self.known[text] = self.t.encode(text, add_special_tokens=False).ids
        return self.known[text]

    def user(self, text: str) -> list[int]:
        """Encodes text of the user, without control tokens (the generator writes none)."""
        return self.t.encode(text, add_special_tokens=False).ids

    def context(self, text: str, turns: list[tuple[str, str]] | None = None) -> list[int]:
        """Encodes what all tasks share after the system text: earlier messages, the first one by the user, then the text."""
        ids: list[int] = []
        for i, (_, said) in enumerate(turns or []):
            following = turns[i + 1][0] if i + 1 < len(turns) else "user"
            ids += self.user(said) + self.ids(f"<|im_end|>\n<|im_start|>{following}\n")
        return ids + self.user(text + SEPARATOR)

    def prompt(self, task: Task) -> list[int]:
        """Encodes a task, up to where the model's answer begins."""
        return self.user(task_text(task.body)) + self.tail

    def branch(self, task: Task) -> tuple[list[int], list[float]]:
        """Returns the tokens of a task with its answer, and the weight of each in the loss: 0 where the model has no choice."""
        ids = self.prompt(task)
        text, spans = task.written()
        # Before free text, the grammar writes all forced text; elsewhere an answer is tokenized as a whole.
        cut = len(FREE) if task.body["type"] == "decide" and "options" not in task.body else 0
        answer: list[tuple[int, int, int]] = []
        for part, shift in ((text[:cut], 0), (text[cut:], cut)):
            encoding = self.t.encode(part, add_special_tokens=False)
            answer += [(t, a + shift, b + shift) for t, (a, b) in zip(encoding.ids, encoding.offsets)]
        weights = [0.0] * len(answer)
        scale = DECISION if task.body["type"] == "decide" else 1.0
        for a, b in spans:
            mine = [i for i, (_, start, end) in enumerate(answer) if start < b and end > a]
            place = ABSENT if text.startswith(":null", a) else PLACE
            for order, i in enumerate(mine):
                weights[i] = scale * (place if order == 0 else PLACE if order == 1 else REST)
        written = [t for t, _, _ in answer]
        if task.body["type"] == "decide" and "options" in task.body:
            told = self.told_apart(task, written)
            first = min(told, default=len(written))
            weights = [w and scale * (PLACE if i in told else REST * (i > first)) for i, w in enumerate(weights)]
        return ids + written, [0.0] * len(ids) + weights

    def told_apart(self, task: Task, written: list[int]) -> list[int]:
        """Returns the positions in a decision's answer at which options differ. The common beginning of all options is not trained, because
        the engine writes it itself."""
        paths = [
            self.t.encode(Task("", task.body, {"value": o}).written()[0], add_special_tokens=False).ids
            for o in task.body["options"]
        ]
        found = []
        for i, token in enumerate(written):
            if any(i < len(p) and p[i] != token for p in paths):
                found.append(i)
            paths = [p for p in paths if i < len(p) and p[i] == token]
        return found

    def chat(self, turns) -> tuple[list[int], list[float]]:
        ids: list[int] = []
        weights: list[float] = []
        for i, (role, text) in enumerate(turns):
            head = self.ids(("\n" if i else "") + f"<|im_start|>{role}\n")
            body = self.user(text)
            ids += [*head, *body, self.stop]
            weights += [0.0] * len(head) + self.said(len(body), role)
        return ids, weights

    def said(self, size: int, role: str = "assistant") -> list[float]:
        """Returns the weights of a message of `size` tokens and of its end."""
        return [FIRST, *[SAID] * size] if role == "assistant" else [0.0] * (size + 1)

    def questions(self, text: str, asked: list[tuple[str, str]]) -> list[tuple[list[int], list[float]]]:
        """Encodes a chat's first message up to the question, and each question with its answer after it, in the same tokens as `chat`."""
        head = self.ids("<|im_start|>user\n") + self.user(text + SEPARATOR)
        parts = [(head, [0.0] * len(head))]
        for ask, answer in asked:
            front = self.user(ask) + [self.stop] + self.ids("\n<|im_start|>assistant\n")
            body = self.user(answer)
            parts.append((front + body + [self.stop], [0.0] * len(front) + self.said(len(body))))
        return parts
