"""The written material under `data/`: lists of phrases, templates and words, each divided into a training and a test part.

A list of five or more keeps every sixth entry for the test part; a list of wordings of three or more keeps every sixth and its last.
Training never sees the test part, and the test data uses nothing else where a test part exists.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

DATA = Path(__file__).parent / "data"


def part(items: list, split: str) -> list:
    """The `train` or `test` part of a list."""
    if len(items) < 5:
        return items
    return [x for i, x in enumerate(items) if (i % 6 == 4) == (split == "test")]


def wordings(items: list[str], split: str) -> list[str]:
    if len(items) < 3:
        return items
    held_out = lambda i: i == len(items) - 1 or i % 6 == 5
    return [x for i, x in enumerate(items) if held_out(i) == (split == "test")]


@dataclass(frozen=True)
class Section:
    key: str
    labels: tuple[str, ...]
    items: tuple[str, ...]

    def take(self, split: str) -> list[str]:
        return _part(self.items, split)

    def names(self, split: str) -> list[str]:
        """Label wordings; what is a wording of another label in training is none of the test."""
        mine = _wordings(self.labels, split)
        return mine if split == "train" else [n for n in mine if n not in known_names()] or mine


@cache
def _part(items: tuple[str, ...], split: str) -> list[str]:
    return part(list(items), split)


@cache
def _wordings(items: tuple[str, ...], split: str) -> list[str]:
    return wordings(list(items), split)


LABEL_FILES = ("topics", "tone", "reviews", "news", "filler", "languages", "documents", "classes")


@cache
def known_names() -> frozenset[str]:
    """Wordings of labels that training has."""
    return frozenset(n for f in LABEL_FILES for s in bank(f).values() for n in s.names("train"))


@cache
def bank(name: str) -> dict[str, Section]:
    """`data/NAME.txt`: sections headed `= key | wording; wording`, then one item a line (`a | b` in word files: several)."""
    sections: dict[str, tuple[list[str], list[str]]] = {}
    lines: list[str] = []
    key = ""
    for raw in (DATA / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        line = raw.strip()
        if not line or line.startswith("# "):
            continue
        if line.startswith("= "):
            key, _, labels = line[2:].partition(" | ")
            lines = []
            sections[key.strip()] = ([w.strip() for w in labels.split(";") if w.strip()], lines)
        elif name in WORD_FILES:
            lines.extend(words_of(line))
        elif name == "languages" or key.strip() in WORD_SECTIONS:
            lines.extend(x.strip() for x in line.split("|"))
        else:
            lines.append(line.replace("\\n", "\n"))
    return {k: Section(k, tuple(names), tuple(items)) for k, (names, items) in sections.items()}


WORD_FILES = {"words", "classes", "polarity"}
WORD_SECTIONS = {"room", "meeting", "subject", "thing"}


def words_of(line: str) -> list[str]:
    return [x.strip() for x in line.split("|")] if "|" in line else line.split()


@dataclass(frozen=True)
class Field:
    slot: str
    type: str
    keys: tuple[str, ...]
    phrases: tuple[str, ...]


@cache
def fields() -> dict[str, Field]:
    found = {}
    for line in (DATA / "fields.txt").read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            slot, kind, keys, phrases = (x.strip() for x in line.split(" : "))
            found[slot] = Field(
                slot, kind, tuple(k.strip() for k in keys.split(",")), tuple(p.strip() for p in phrases.split(";"))
            )
    return found


@cache
def _of_fields(split: str, what: str) -> frozenset[str]:
    return frozenset(x for f in fields().values() for x in _wordings(getattr(f, what), split))


@cache
def keys_of(slot: str, split: str) -> list[str]:
    """Key names; in training those too that are made of the slot's phrases (`the e-mail address`: `e_mail_address`)."""
    mine = _wordings(fields()[slot].keys, split)
    if split == "test":
        return [k for k in mine if k not in _of_fields("train", "keys")] or mine
    plain = (re.sub(r"^(the|a|an) |'s|'", "", p.lower()) for p in phrases_of(slot, split))
    made = [re.sub(r"[^a-z]+", "_", p).strip("_") for p in plain if not p.startswith(PREPOSITIONS)]
    return list(dict.fromkeys([*mine, *(m for m in made if m.count("_") < 4 and m not in _of_fields("test", "keys"))]))


PREPOSITIONS = ("in ", "on ", "at ", "by ", "to ", "from ", "until", "when", "where", "which", "what")


@cache
def phrases_of(slot: str, split: str) -> list[str]:
    mine = _wordings(fields()[slot].phrases, split)
    return mine if split == "train" else [p for p in mine if p not in _of_fields("train", "phrases")] or mine
