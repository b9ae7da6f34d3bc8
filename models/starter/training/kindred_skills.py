"""Exercises in choosing by meaning: which option is used like a word of the text. It is the step between `mention_skills.py`, where the
word itself is in the text, and labels, of which only the meaning is."""

from functools import cache
from random import Random

import numpy as np

from banks import bank
from chance import choose
from decisions import article, finish, yes_no
from dictionary import common_words
from documents import Document
from sources import glove
from tasks import Task

CLOSE = 0.62
"""Smallest cosine of the word vectors of two words that count as related in use."""
RELATED = 0.42
"""Smallest cosine with which a word counts as a hint at another."""
FAR = 0.25
"""Largest cosine of two words that count as unrelated."""
NEIGHBOURS, HINTS = 6, 50
DULL = 150
"""Number of the most frequent words that are ignored, because they say little about the subject of a text."""

FITS = (
    "Which word fits the text?", "What is it about?", "Which of these is closest to what is said?", "What does the text speak of?", "Topic?", "Which heading suits it?",
    "Which one has to do with the text?", "Category?", "Which label fits best?", "What is meant?", "Which of these belongs here?",
)  # fmt: skip
FITS_NOT = (
    "Which word has nothing to do with the text?",
    "Which one does not fit?",
    "Which of these does not belong here?",
    "What is it not about?",
)
IS_ABOUT = (
    "Is it about {}?",
    "Does the text speak of {}?",
    "Has it to do with {}?",
    "Is something like {} meant?",
    "Does “{}” fit?",
)


@cache
def _kin() -> tuple[list[str], np.ndarray, dict[int, list[int]], dict[int, list[int]]]:
    """Returns the words, their vectors of length 1, and for each word the indices of related words and of words that hint at it."""
    place = {w: i for i, w in enumerate(glove()[0])}
    words = [w for w in common_words()[DULL:] if len(w) > 2]
    vectors = glove()[1][[place[w] for w in words]]
    vectors = vectors - vectors.mean(0)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    kin, hints = {}, {}
    for start in range(0, len(words), 1000):
        close = vectors[start : start + 1000] @ vectors.T
        for row, found in enumerate(close):
            best = np.argpartition(-found, HINTS)[:HINTS]
            best = [int(j) for j in best[np.argsort(-found[best])] if not _same_stem(words[j], words[start + row])]
            mine = [j for j in best[:NEIGHBOURS] if found[j] >= CLOSE]
            if mine:
                kin[start + row] = mine
                hints[start + row] = [j for j in best if found[j] >= RELATED]
    return words, vectors, kin, hints


def _same_stem(a: str, b: str) -> bool:
    return a[:5] == b[:5]


def theme(r: Random, split: str) -> tuple[Document, list[Task]]:
    """Creates a text of words that hint at another word, which is not in the text; the question is what it is about."""
    words, vectors, _, hints = _kin()
    rich = [i for i in (choose(r, _known(split)) for _ in range(12)) if len(hints[i]) > 5]
    abouts = rich[: 1 + (r.random() < 0.3)]
    if not abouts:
        return theme(r, split)
    said: list[int] = []
    left = {}
    for about in abouts:
        some = r.sample(hints[about], min(len(hints[about]) - 1, 3 + int(r.random() * 5)))
        said += some
        left[about] = [about, *(i for i in hints[about][:4] if i not in some)]
    shown = [words[i] for i in said]
    text = choose(r, (", ", " ", "; ", "\n")).join(shown)
    if r.random() < 0.5:
        text = " ".join(choose(r, bank("questions")["sentence"].take(split)).format(w) for w in shown[:4])
    middle = np.stack([vectors[said].mean(0), *vectors[abouts]])
    middle /= np.linalg.norm(middle, axis=1, keepdims=True)
    away = [i for i in r.sample(range(len(words)), 40) if (middle @ vectors[i]).max() < FAR and i not in said]
    tasks = []
    for _ in range(8):
        right = words[choose(r, left[choose(r, abouts)])]
        wrong = [words[i] for i in r.sample(away, min(len(away), 1 + int(r.random() * r.random() * 8)))]
        if wrong and r.random() < 0.3:
            truth = r.random() < 0.5
            options, value = yes_no(r, truth)
            tasks.append(
                finish(r, "theme_yes_no", choose(r, IS_ABOUT).format(right if truth else wrong[0]), options, value)
            )
        elif wrong:
            options = [right, *wrong]
            r.shuffle(options)
            tasks.append(finish(r, "theme", choose(r, FITS), options, right))
    tasks = [t for t in tasks if len(set(t.body["options"])) == len(t.body["options"]) > 1]
    return (Document("theme", text), tasks) if tasks else theme(r, split)


def kindred(r: Random, split: str) -> tuple[Document, list[Task]]:
    """Creates a text of a few words; the question is which option is used like one of them."""
    words, vectors, kin, _ = _kin()
    known = _known(split)
    here = r.sample(known, 1 + int(r.random() * 4))
    text = choose(r, (", ", "\n", "; ", " and ", ". ", " ")).join(words[i] for i in here)
    if r.random() < 0.6:
        text = " ".join(choose(r, bank("questions")["sentence"].take(split)).format(words[i]) for i in here)
    away = [i for i in r.sample(range(len(words)), 40) if (vectors[here] @ vectors[i]).max() < FAR]
    tasks: list[Task] = []
    for _ in range(10):
        x = r.random()
        like = choose(r, kin[choose(r, here)])
        right = words[like]
        wrong = [words[i] for i in r.sample(away, min(len(away), 1 + int(r.random() * r.random() * 7)))]
        if x < 0.6:
            options = [right, *wrong]
            r.shuffle(options)
            tasks.append(finish(r, "kindred", choose(r, FITS), options, right))
        elif x < 0.68 and wrong:
            others = list(dict.fromkeys(words[choose(r, kin[i])] for i in here))
            options = [wrong[0], *others]
            r.shuffle(options)
            tasks.append(finish(r, "kindred_not", choose(r, FITS_NOT), options, wrong[0]))
        elif wrong:
            truth = r.random() < 0.5
            options, value = yes_no(r, truth)
            word = right if truth else wrong[0]
            tasks.append(
                finish(
                    r,
                    "kindred_yes_no",
                    choose(r, IS_ABOUT).format(article(word) if r.random() < 0.3 else word),
                    options,
                    value,
                )
            )
    tasks = [t for t in tasks if len(set(t.body["options"])) == len(t.body["options"]) > 1]
    return (Document("kindred", text), tasks) if tasks else kindred(r, split)


@cache
def _known(split: str) -> list[int]:
    """Returns the indices of words that have related words; every twelfth is kept for tests."""
    return [i for n, i in enumerate(_kin()[2]) if (n % 12 == 0) == (split == "test")]
