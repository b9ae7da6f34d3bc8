"""The common words and their meanings, from WordNet."""

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache

from banks import LABEL_FILES, bank, known_names
from sources import glove, wordnet

COMMON = 8000
"""Number of the most frequent words that have tokens of their own; tasks ask only about these."""
CLASSES = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}


def _stems(word: str):
    """Yields the word, and the words of which it may be an inflected form."""
    yield word
    for ending, instead in (
        ("s", ""),
        ("es", ""),
        ("ies", "y"),
        ("ed", ""),
        ("ed", "e"),
        ("ing", ""),
        ("ing", "e"),
        ("er", ""),
        ("est", ""),
        ("ly", ""),
    ):
        if word.endswith(ending):
            yield word[: len(word) - len(ending)] + instead
    if re.search(r"(.)\1(ed|ing)$", word):
        yield re.sub(r"(.)\1(ed|ing)$", r"\1", word)


@cache
def lemmas() -> frozenset[str]:
    """Returns all single lower-case words that have an entry in WordNet."""
    return frozenset(line.split(" ", 1)[0] for c in CLASSES for line in wordnet("index", c))


SMALL = frozenset(
    ["the", "of", "to", "and", "in", "for", "that", "on", "is", "was", "with", "he", "as", "it", "by", "at", "from", "his", "an", "be", "has", "are", "have", "but", "were", "not", "this", "who", "they", "had", "which", "will", "their", "or", "its", "one", "been", "also", "we", "would", "i", "you", "she", "him", "her", "them", "our", "your", "my", "me", "us", "what", "where", "when", "why", "how", "than", "then", "these", "those", "there", "here", "if", "so", "because", "until", "while", "since", "during", "against", "between", "through", "into", "onto", "about", "above", "below", "under", "over", "after", "before", "without", "within", "could", "should", "must", "may", "might", "can", "do", "does", "did", "don", "doesn", "didn", "isn", "wasn", "aren", "weren", "won", "ll", "ve", "re", "please", "hello", "hi", "thanks", "everybody", "somebody", "nobody", "something", "anything", "nothing", "everything", "whose", "whom", "myself", "yourself", "itself"]
)  # fmt: skip


@cache
def common_words(most: int | None = COMMON) -> list[str]:
    """Returns frequent English words without names of people and places, the most frequent first; with None, all of them."""
    known = lemmas() | SMALL
    plain = (w for w in glove()[0] if re.fullmatch("[a-z]{2,}", w) and not w.endswith(("ii", "iii")))
    found = []
    for word in plain:
        if any(s in known for s in _stems(word)):
            found.append(word)
            if len(found) == most:
                break
    return found


@dataclass(frozen=True)
class Meaning:
    """One meaning (a synset of WordNet)."""

    word_class: str
    group: str
    """Lexicographer file of the synset, such as `noun.food`."""
    words: tuple[str, ...]
    definition: str
    examples: tuple[str, ...]
    kinds: tuple[str, ...]
    """Words for the more general thing that it is a kind of (hypernyms)."""
    opposites: tuple[str, ...]
    domains: tuple[str, ...]
    """Words for the subject to which it belongs, such as `law`."""


GROUPS = ["adj.all", "adj.pert", "adv.all", "noun.Tops", "noun.act", "noun.animal", "noun.artifact", "noun.attribute", "noun.body", "noun.cognition", "noun.communication", "noun.event", "noun.feeling", "noun.food", "noun.group", "noun.location", "noun.motive", "noun.object", "noun.person", "noun.phenomenon", "noun.plant", "noun.possession", "noun.process", "noun.quantity", "noun.relation", "noun.shape", "noun.state", "noun.substance", "noun.time", "verb.body", "verb.change", "verb.cognition", "verb.communication", "verb.competition", "verb.consumption", "verb.contact", "verb.creation", "verb.emotion", "verb.motion", "verb.perception", "verb.possession", "verb.social", "verb.stative", "verb.weather", "adj.ppl"]  # fmt: skip
"""Names of the lexicographer files, in the order of lexnames(5WN)."""


def _label_words_of_test() -> set[str]:
    """Returns the words of label wordings that only the test part may use."""
    return {n.lower() for f in LABEL_FILES for s in bank(f).values() for n in s.names("test")} - known_names()


@cache
def meanings() -> list[Meaning]:
    """Returns the first two meanings of each common word, without offensive and obsolete ones."""
    allowed = set(common_words()) - _label_words_of_test()
    first = set()
    for c, letter in CLASSES.items():
        for line in wordnet("index", c):
            parts = line.split()
            if set(parts[0].split("_")) <= allowed:
                offsets = parts[-int(parts[2]) :]
                first.update((letter, o) for o in offsets[:2])
    raw = {}
    for c in CLASSES:
        for line in wordnet("data", c):
            head, _, gloss = line.partition(" | ")
            parts = head.split()
            count = int(parts[3], 16)
            words = [re.sub(r"\(.*\)", "", w) for w in parts[4 : 4 + 2 * count : 2]]
            at = 4 + 2 * count
            pointers = [tuple(parts[at + 1 + 4 * i : at + 5 + 4 * i]) for i in range(int(parts[at]))]
            raw[CLASSES[c], parts[0]] = (c, GROUPS[int(parts[1])], words, gloss, pointers)

    def usable(key) -> tuple[str, ...]:
        words = raw[key][2]
        return tuple(w.replace("_", " ") for w in words if set(w.split("_")) <= allowed)

    found = []
    for key in raw:
        c, group, _, gloss, pointers = raw[key]
        if (
            key not in first
            or not usable(key)
            or re.search(r"offensive|slur|obscene|ethnic|vulgar|obsolete|derog|disparag", gloss)
        ):
            continue
        to = defaultdict(list)
        for symbol, offset, letter, _ in pointers:
            target = ("a" if letter == "s" else letter, offset)
            to[symbol].extend(usable(target) if target in raw else ())
        examples = re.findall(r'"([^"]+)"', gloss)
        definition = re.sub(r'\s*;?\s*"[^"]*".*$', "", gloss).strip(" ;:")
        definition = re.sub(r"^\([^)]*\)\s*", "", definition)
        if not definition:
            continue
        found.append(
            Meaning(c, group, usable(key), definition, tuple(examples), tuple(to["@"]), tuple(to["!"]), tuple(to[";c"]))
        )
    return found
