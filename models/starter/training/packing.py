"""Packs training texts into the rows of a batch: one root, several contexts after it, and several branches after each context, all in one
sequence.

By the mask a token sees the root, its own context and its own branch, and its position continues from them: every branch is computed
as if it were alone, and root and contexts are computed once. The engine decodes the same tree.
"""

from dataclasses import dataclass, field, replace
from random import Random

import numpy as np

from chat import make_chat, told_apart
from document_tasks import make_tasks, who_is_who
from documents import Document, make_document
from judged import judged_text
from number_skills import numbers
from prompt import Encoder
from skills import make_exercise
from tasks import Task


@dataclass(frozen=True)
class Mix:
    """Sizes of a batch, and the sources of its contexts."""

    row: int
    """Number of tokens in a row."""
    rows: int
    exercises: float
    judged: float
    """Share of texts that authors have judged (`judged.py`)."""
    chats: float
    tasks: int
    """Most branches (tasks) of a context."""
    root: bool = True
    """True if rows begin with the system text; without it, the first lessons are cheaper."""
    longest: int = 160
    """Longest context in tokens."""
    numbers: float = 0.0
    """Share of exercises in comparing numbers, in addition to those among the exercises: a skill that is learned only by much repetition.
    No part of a test."""
    who_is_who: float = 0.0
    """Share of documents with several persons, days or sums, and questions that distinguish them (also learned only by repetition), in
    addition to the other documents."""
    echoes: float = 0.0
    """Share of sequences that only repeat themselves: the shortest way to attention heads that copy."""


@dataclass
class Group:
    """A context with its branches. A chat with several messages is a context without branches."""

    context: list[int]
    """Weight of each of the context's tokens in the loss. Each branch has its weights after its tokens."""
    weights: list[float]
    rooted: bool
    branches: list[tuple[list[int], list[float], str]] = field(default_factory=list)

    def __len__(self):
        return len(self.context) + sum(len(b[0]) for b in self.branches)


WORDS = 0.05
"""Weight of a context's lower-case words in the loss: predicting them teaches their meaning. Names and numbers cannot be predicted."""


def make_echo(r: Random, split: str, encoder: Encoder, mix: Mix) -> Group:
    """Creates a sequence of random tokens, or a text's, followed by repeated spans of it; the continuation of each span is to be predicted."""
    if r.random() < 0.6:
        size = 4 + int(r.random() * (10 if r.random() < 0.7 else 50))
        first = [5 + int(r.random() * (encoder.size - 5)) for _ in range(size)]
    else:
        first = encoder.context(make_document(r, split).text)[: mix.row // 2]
    ids, weights = list(first), [0.0] * len(first)
    while len(ids) < min(mix.row, 3 * len(first) + 12):
        start = int(r.random() * (len(first) - 2))
        span = first[start : start + 3 + int(r.random() * 20)]
        ids += span
        weights += [0.0] + [0.3] * (len(span) - 1)
    return Group(ids[: mix.row], weights[: mix.row], False)


def make_text(r: Random, split: str, mix: Mix, x: float) -> tuple[Document, list[Task]]:
    """Creates a text with tasks. `x`, from 0 to the share that chats leave of 1, selects the source by the sources' shares; the rest are
    documents."""
    for share, make in (
        (mix.exercises, make_exercise),
        (mix.judged, judged_text),
        (mix.numbers, numbers),
        (mix.who_is_who, who_is_who),
    ):
        if x < share:
            return make(r, split)
        x -= share
    document = make_document(r, split)
    return document, make_tasks(r, document, split, mix.tasks - int(r.random() * mix.tasks * 0.6))


APART = 0.45
"""Share of chats that are questions about a text, in which the text is read once for several questions, each independent of the others. In
the other chats the text is read for one question."""


def make_chat_group(r: Random, split: str, encoder: Encoder, mix: Mix) -> Group:
    if r.random() > APART:
        ids, weights = encoder.chat(make_chat(r, split))
        return Group(ids[: mix.row], weights[: mix.row], False)
    text, asked = told_apart(r, split, mix.tasks)
    context, *branches = encoder.questions(text, asked)
    if len(context[0]) > mix.longest:
        return make_chat_group(r, split, encoder, mix)
    return Group(*context, False, [(ids, weights, "told") for ids, weights in branches])


def make_group(r: Random, split: str, encoder: Encoder, mix: Mix) -> Group:
    x = r.random()
    if x < mix.echoes:
        return make_echo(r, split, encoder, mix)
    x = r.random() - mix.chats
    if x < 0:
        return make_chat_group(r, split, encoder, mix)
    document, tasks = make_text(r, split, mix, x)
    context = encoder.context(document.text, document.turns)
    head = len(encoder.root) if mix.root else 0
    if len(context) > mix.longest or len(context) > mix.row - head - 80:
        return make_group(r, split, encoder, mix)
    group = Group(context, [WORDS * encoder.is_word[t] for t in context[:-1]] + [0.0], True)
    group.weights[0] = 0.0
    room = mix.row - head - len(context)
    for task in tasks:
        ids, weights = encoder.branch(task)
        if len(ids) <= room:
            group.branches.append((ids, weights, task.skill))
    return group if group.branches else make_group(r, split, encoder, mix)


def fit(group: Group, room: int, least: int) -> tuple[Group | None, Group | None]:
    """Returns the part of a group that fits into the free space of a row, and the rest. If at least `least` branches fit, the context is
    repeated with the rest, rather than leaving the space unused."""
    if len(group) <= room:
        return group, None
    here, rest, size = [], [], len(group.context)
    for branch in group.branches:
        if size + len(branch[0]) <= room:
            here.append(branch)
            size += len(branch[0])
        else:
            rest.append(branch)
    if len(here) < least:
        return None, group
    part = lambda branches: Group(group.context, group.weights, group.rooted, branches)
    return part(here), part(rest)


@dataclass
class Batch:
    tokens: np.ndarray
    positions: np.ndarray
    """For `tree_mask`: the number of each token's context, that of its branch in the context (0: the context itself), and whether it sees
    the root."""
    context: np.ndarray
    branch: np.ndarray
    rooted: np.ndarray
    """For each chosen token: the index (row * length + column) of the position before it, the token itself, its weight, and the number of
    its answer in `skills`."""
    index: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    answer: np.ndarray
    skills: list[str]
    """Vocabulary ids of the tokens to which `tokens` and `target` refer by index; None if they are vocabulary ids themselves (before
    `Batch.window`)."""
    ids: np.ndarray | None = None

    def window(self, r: Random, size: int, vocabulary: int) -> "Batch":
        """Returns the batch with a vocabulary of `size` tokens, renumbered: its own tokens and others drawn at random. The loss
        distinguishes the right token only from these, and only their rows of the embedding table are read and trained (sampled softmax,
        Jean et al. 2015)."""
        mine = np.unique(np.concatenate([self.tokens.ravel(), self.target]))
        others = np.random.default_rng(r.getrandbits(64)).permutation(vocabulary)
        ids = np.sort(np.concatenate([mine, others[~np.isin(others, mine)][: max(0, size - len(mine))]]))
        number = np.zeros(vocabulary, np.int64)
        number[ids] = np.arange(len(ids))
        return replace(self, tokens=number[self.tokens], target=number[self.target], ids=ids)


ROOT, PAD = 0, -1


class Packer:
    """Creates batches without end. Groups that do not fit into a row wait for the next one."""

    def __init__(self, encoder: Encoder, split: str):
        self.encoder, self.split = encoder, split

    def batch(self, r: Random, mix: Mix) -> Batch:
        n = mix.row
        head = self.encoder.root if mix.root else []
        tokens = np.zeros((mix.rows, n), np.int64)
        positions = np.zeros((mix.rows, n), np.int64)
        context = np.full((mix.rows, n), PAD, np.int64)
        branch = np.zeros((mix.rows, n), np.int64)
        rooted = np.zeros((mix.rows, n), bool)
        index, target, weight, owner, skills = [], [], [], [], []
        waiting: list[Group] = []
        for row in range(mix.rows):
            tokens[row, : len(head)] = head
            positions[row, : len(head)] = np.arange(len(head))
            context[row, : len(head)] = ROOT
            rooted[row, : len(head)] = True
            at, number, misses = len(head), 0, 0
            while misses < 3:
                group = waiting.pop(misses) if misses < len(waiting) else make_group(r, self.split, self.encoder, mix)
                fits, rest = fit(group, n - at, 2 if misses < 2 else 1)
                if rest:
                    waiting.insert(misses, rest)
                    misses += 1
                if not fits:
                    continue
                number += 1
                start = len(head) if fits.rooted else 0
                parts = [(fits.context, fits.weights, "text" if fits.branches else "told"), *fits.branches]
                for b, (ids, weights, skill) in enumerate(parts):
                    end = at + len(ids)
                    tokens[row, at:end] = ids
                    positions[row, at:end] = start + np.arange(len(ids))
                    context[row, at:end] = number
                    branch[row, at:end] = b
                    rooted[row, at:end] = fits.rooted
                    places = [i for i, w in enumerate(weights) if w]
                    if places:
                        for i in places:
                            index.append(row * n + at + i - 1)
                            target.append(ids[i])
                            weight.append(weights[i])
                            owner.append(len(skills))
                        skills.append(skill)
                    at = end
                    if b == 0:
                        start += len(ids)
        return Batch(
            tokens, positions, context, branch, rooted, np.array(index), np.array(target),
            np.array(weight, np.float32), np.array(owner), skills,
        )  # fmt: skip


def tree_mask(context, branch, rooted):
    """Returns a mask [rows, 1, n, n]: true where the token of a line sees the token of a column. The arguments are tensors [rows, n]."""
    at_root = (context == ROOT)[:, None, :] & rooted[:, :, None]
    same = context[:, :, None] == context[:, None, :]
    own = (branch[:, None, :] == 0) | (branch[:, :, None] == branch[:, None, :])
    return (at_root | (same & own)).tril()[:, None]
