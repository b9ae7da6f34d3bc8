"""Exercises in the meaning of thousands of words, from a dictionary: which word is meant, what kind of thing it is, which words mean the
same or the opposite."""

from collections import defaultdict
from functools import cache
from random import Random

from chance import choose
from decisions import article, capital, finish, yes_no
from dictionary import Meaning, meanings
from documents import Document
from tasks import Task

GROUPS = {
    "noun.animal": ("animal", "living creature", "creature"),
    "noun.plant": ("plant", "something that grows", "vegetation"),
    "noun.food": ("food", "something to eat or drink", "meal"),
    "noun.person": ("person", "human being", "somebody"),
    "noun.artifact": ("object", "man-made thing", "device or product"),
    "noun.body": ("part of the body", "body part", "anatomy"),
    "noun.communication": ("message", "something said or written", "communication"),
    "noun.feeling": ("feeling", "emotion", "mood"),
    "noun.location": ("place", "location", "area"),
    "noun.time": ("time", "period", "point in time"),
    "noun.quantity": ("quantity", "measure", "amount"),
    "noun.event": ("event", "happening", "occurrence"),
    "noun.act": ("action", "activity", "something done"),
    "noun.group": ("group", "organisation", "collection"),
    "noun.possession": ("money or property", "possession", "finance"),
    "noun.state": ("state", "condition", "situation"),
    "noun.cognition": ("idea", "thought", "knowledge"),
    "noun.substance": ("material", "substance", "matter"),
    "noun.phenomenon": ("phenomenon", "weather or force of nature", "natural event"),
    "verb.motion": ("moving", "motion", "going somewhere"),
    "verb.communication": ("saying", "speaking or writing", "telling"),
    "verb.emotion": ("feeling", "emotion", "mood"),
    "verb.possession": ("giving or taking", "buying and selling", "having"),
    "verb.change": ("changing", "becoming different", "change"),
    "verb.contact": ("touching or hitting", "physical contact", "handling"),
    "verb.creation": ("making", "creating", "building"),
    "verb.cognition": ("thinking", "knowing", "understanding"),
    "verb.consumption": ("eating or using up", "consuming", "using"),
}
"""Wordings for WordNet's lexicographer files. Groups that people would confuse are not contrasted more often than others."""

WORD = (
    "Which word is meant?",
    "What is described?",
    "Which word fits the description?",
    "What is this?",
    "Find the word.",
    "Which is it?",
)
ABOUT = ("Is this {}?", "Does it describe {}?", "Is {} meant?", "Is it about {}?")
KIND = (
    "What kind of thing is it?",
    "Which group does it belong to?",
    "What is it?",
    "Category?",
    "Which heading fits?",
    "Of what kind is it?",
)
SAME = (
    "Which word means nearly the same as “{}”?",
    "Another word for {}?",
    "Which of these says the same as {}?",
    "Synonym of {}?",
)
OPPOSITE = ("Which is the opposite of {}?", "What is the contrary of “{}”?", "Which word says the opposite of {}?")


@cache
def part(split: str) -> list[Meaning]:
    """Returns the meanings of one part; every twelfth is kept for tests."""
    return [m for i, m in enumerate(meanings()) if (i % 12 == 0) == (split == "test")]


@cache
def _by(split: str, what: str) -> dict[str, list[Meaning]]:
    found = defaultdict(list)
    for m in part(split):
        found[getattr(m, what)].append(m)
    return found


@cache
def _of_subject(split: str) -> list[Meaning]:
    return [m for m in part(split) if m.domains]


def draw(r: Random, split: str) -> Meaning:
    """Draws a meaning: nouns, verbs and adjectives about as often as texts have them, and more often one with examples."""
    m = choose(r, _by(split, "word_class")[choose(r, ("noun", "noun", "noun", "verb", "verb", "adj", "adj", "adv"))])
    return m if m.examples or r.random() < 0.6 else draw(r, split)


def others(r: Random, split: str, m: Meaning, count: int) -> list[Meaning]:
    """Returns other meanings of the same word class, some of them of the same group."""
    near, far = _by(split, "group")[m.group], _by(split, "word_class")[m.word_class]
    found = [choose(r, near if r.random() < 0.3 else far) for _ in range(count + 3)]
    mine = set(m.words) | set(m.kinds)
    return [o for o in found if not mine & (set(o.words) | set(o.kinds))][:count]


def options_of(r: Random, right: str, wrong: list[str]) -> list[str] | None:
    options = list(dict.fromkeys([right, *wrong]))
    r.shuffle(options)
    return options if len(options) > 1 else None


def many(r: Random) -> int:
    return 1 + int(r.random() * r.random() * 7)


def ask_word(r: Random, split: str, m: Meaning) -> Task | None:
    away = others(r, split, m, many(r))
    right = choose(r, m.words)
    if r.random() < 0.25 and away:
        truth = r.random() < 0.5
        options, value = yes_no(r, truth)
        word = right if truth else choose(r, away[0].words)
        word = article(word) if m.word_class == "noun" and r.random() < 0.5 else word
        return finish(r, "word_yes_no", choose(r, ABOUT).format(word), options, value)
    options = options_of(r, right, [choose(r, o.words) for o in away])
    return options and finish(r, "word", choose(r, WORD), options, right)


def ask_kind(r: Random, split: str, m: Meaning) -> Task | None:
    away = others(r, split, m, many(r))
    if m.group in GROUPS and (r.random() < 0.5 or not m.kinds):
        groups = [g for g in r.sample(list(GROUPS), 5) if g[:4] == m.group[:4] and g != m.group]
        right, wrong = choose(r, GROUPS[m.group]), [choose(r, GROUPS[g]) for g in groups]
    elif m.kinds:
        right, wrong = choose(r, m.kinds), [choose(r, o.kinds) for o in away if o.kinds and o.group != m.group]
    else:
        return None
    wrong = [w for w in wrong if w not in m.kinds and w not in m.words and w != right]
    if wrong and r.random() < 0.25:
        truth = r.random() < 0.5
        options, value = yes_no(r, truth)
        return finish(
            r, "word_kind_yes_no", choose(r, ABOUT).format(article(right if truth else wrong[0])), options, value
        )
    options = options_of(r, right, wrong)
    return options and finish(r, "word_kind", choose(r, KIND), options, right)


def ask_domain(r: Random, split: str, m: Meaning) -> Task | None:
    if not m.domains:
        return None
    pool = [o.domains[0] for o in _of_subject(split) if not set(o.domains) & set(m.domains)]
    options = options_of(r, m.domains[0], r.sample(pool, many(r)))
    return options and finish(
        r,
        "word_domain",
        choose(r, ("Which subject is this from?", "Which field does it belong to?", "Subject?", "Topic?")),
        options,
        m.domains[0],
    )


def described(r: Random, split: str) -> tuple[Document, list[Task]]:
    """Creates a text that defines a word or shows its use, with questions: which word is it, what kind of thing, of which subject."""
    m = draw(r, split)
    said = [m.definition, *m.examples] if r.random() < 0.5 else [choose(r, (m.definition, *m.examples))]
    text = ". ".join(capital(s.strip()) for s in said[:3]) + choose(r, (".", "", "."))
    makers = (ask_word, ask_word, ask_kind, ask_domain if m.domains else ask_kind)
    tasks = [t for t in (choose(r, makers)(r, split, m) for _ in range(7)) if t]
    return (Document("described", text), tasks) if tasks else described(r, split)


def word_list(r: Random, split: str) -> tuple[Document, list[Task]]:
    """Creates a list of words, with questions: which one is a certain kind of thing, which one is described, which ones mean the same."""
    here = [draw(r, split) for _ in range(2 + int(r.random() * 5))]
    words = [choose(r, m.words) for m in here]
    if len(set(words)) < len(words):
        return word_list(r, split)
    text = choose(r, (", ", "\n", "; ", " / ", " and ")).join(words)
    tasks = []
    for _ in range(7):
        i = int(r.random() * len(here))
        m, word = here[i], words[i]
        same = [w for w in m.words if w != word]
        x = r.random()
        if x < 0.35:
            options = options_of(r, word, words)
            tasks.append(
                options
                and finish(
                    r,
                    "word_which",
                    choose(r, ("Which one is this: {}?", "Which word means: {}?", "Which of them is {}?")).format(
                        m.definition
                    ),
                    options,
                    word,
                )
            )
        elif x < 0.55 and m.kinds and not any(set(m.kinds) & set(o.kinds) for o in here if o is not m):
            options = options_of(r, word, words)
            tasks.append(
                options
                and finish(
                    r,
                    "word_of_kind",
                    choose(r, ("Which of them is {}?", "Which one belongs to this: {}?")).format(
                        article(choose(r, m.kinds))
                    ),
                    options,
                    word,
                )
            )
        elif x < 0.8 and same:
            wrong = [choose(r, o.words) for o in others(r, split, m, many(r))]
            options = options_of(r, choose(r, same), [w for w in wrong if w != word])
            tasks.append(
                options
                and finish(r, "word_same", choose(r, SAME).format(word), options, next(o for o in options if o in same))
            )
        elif m.opposites:
            right = choose(r, m.opposites)
            options = options_of(r, right, [*same[:1], *(choose(r, o.words) for o in others(r, split, m, many(r)))])
            tasks.append(options and finish(r, "word_opposite", choose(r, OPPOSITE).format(word), options, right))
    tasks = [t for t in tasks if t]
    return (Document("word list", text), tasks) if tasks else word_list(r, split)
