"""Rows of a batch: one root, several contexts behind it, several branches behind each context, all in one sequence.

The mask shows a token the root, its own context and its own branch, and positions go on from what it sees: every branch reads
as if it were alone, and root and contexts are computed once. It is the tree that the engine decodes.
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
    """Where the contexts of a batch come from."""

    row: int
    """Tokens of a row."""
    rows: int
    exercises: float
    judged: float
    """Texts that authors judged."""
    chats: float
    tasks: int
    """Most branches of a context."""
    root: bool = True
    """Whether rows begin with the system text; leaving it out makes the first lessons cheaper."""
    longest: int = 160
    """Longest context in tokens."""
    numbers: float = 0.0
    """Numbers held against each other, beside those among the exercises: a skill that comes only when it is asked for over and over.
    No part of a test."""
    who_is_who: float = 0.0
    """Documents with several persons, days or sums, and who or which is meant: likewise, beside the other documents."""
    echoes: float = 0.0
    """Sequences that only repeat themselves: the shortest way to the heads that copy."""


@dataclass
class Group:
    """A context with its branches. A chat in turns is a context alone."""

    context: list[int]
    """What each token weighs in the loss; the same for each branch, behind its tokens."""
    weights: list[float]
    rooted: bool
    branches: list[tuple[list[int], list[float], str]] = field(default_factory=list)

    def __len__(self):
        return len(self.context) + sum(len(b[0]) for b in self.branches)


WORDS = 0.05
"""Weight of a context's lower-case words: to expect them teaches what they mean. Names and numbers cannot be expected."""


def make_echo(r: Random, split: str, encoder: Encoder, mix: Mix) -> Group:
    """Tokens at random, or a text's, then spans of them again; what goes on a span is to be told."""
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
    """A text with tasks; x, from 0 to what chats leave of 1, falls on a source's share or else on the documents."""
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
"""Share of the chats that are questions about a text, each behind the text alone: of the others it is read once for one question."""


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
    """What of a group fits into the room, and what is left. A context is repeated for the rest rather than room being wasted,
    where at least so many branches go with it."""
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
    """For `tree_mask`: number of the context, number of the branch in it, and whether the root is seen."""
    context: np.ndarray
    branch: np.ndarray
    rooted: np.ndarray
    """Index (row * length + column) of the position before each chosen token, the token, its weight and its answer's number in `skills`."""
    index: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    answer: np.ndarray
    skills: list[str]
    """Tokens that `tokens` and `target` number: all, until `Batch.window` has chosen."""
    ids: np.ndarray | None = None

    def window(self, r: Random, size: int, vocabulary: int) -> "Batch":
        """The same with a vocabulary of so many tokens, its own and others at random, numbered anew. The loss tells the right token from these alone,
        and only their rows of the table are read and learned (sampled softmax, Jean et al. 2015)."""
        mine = np.unique(np.concatenate([self.tokens.ravel(), self.target]))
        others = np.random.default_rng(r.getrandbits(64)).permutation(vocabulary)
        ids = np.sort(np.concatenate([mine, others[~np.isin(others, mine)][: max(0, size - len(mine))]]))
        number = np.zeros(vocabulary, np.int64)
        number[ids] = np.arange(len(ids))
        return replace(self, tokens=number[self.tokens], target=number[self.target], ids=ids)


ROOT, PAD = 0, -1


class Packer:
    """Batches without end; groups that do not fit a row wait for the next one."""

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
    """[rows, 1, n, n]: whether the token of a line sees the token of a column. All three: tensors [rows, n]."""
    at_root = (context == ROOT)[:, None, :] & rooted[:, :, None]
    same = context[:, :, None] == context[:, None, :]
    own = (branch[:, None, :] == 0) | (branch[:, :, None] == branch[:, None, :])
    return (at_root | (same & own)).tril()[:, None]
