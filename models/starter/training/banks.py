"""The written material under `data/`: lists of phrases, templates and words, each divided into a training and a test part.

A list of five or more keeps every sixth entry for the test part; a list of wordings of three or more keeps every sixth and its last.
Training never sees the test part, and the test data uses only the test part where there is one. Only training uses `data/more/`, so that later
additions do not change the wordings and texts of the test part (though they may change which of them are asked together: `Field.goes_by`). Entries of
`data/more/` that equal a wording of the test part are ignored.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

DATA = Path(__file__).parent / "data"
MORE = DATA / "more"


def part(items: list, split: str) -> list:
    """Returns the `train` or the `test` part of a list."""
    if len(items) < 5:
        return items
    return [x for i, x in enumerate(items) if (i % 6 == 4) == (split == "test")]


def wordings(items: list[str], split: str) -> list[str]:
    if len(items) < 3:
        return items
    held_out = lambda i: i == len(items) - 1 or i % 6 == 5
    return [x for i, x in enumerate(items) if held_out(i) == (split == "test")]


def evenly(mine: list[str], more: list[str]) -> list[str]:
    """Returns both lists, with the first one repeated, so that a draw comes from either with about the same probability. `data/more/` has
    up to twelve times as many entries, of rarer words; the first list has what people commonly say, like the test part."""
    return mine * max(1, round(len(more) / max(1, len(mine)))) + more


@dataclass(frozen=True)
class Section:
    key: str
    labels: tuple[str, ...]
    items: tuple[str, ...]
    more_labels: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    """Items that only training uses."""

    def take(self, split: str) -> list[str]:
        return _part(self.items, self.more, split)

    def names(self, split: str) -> list[str]:
        """Returns the wordings of the labels, some repeated (`evenly`). A wording of another label in training is never in the test part."""
        mine = _wordings(self.labels, split)
        if split == "test":
            return [n for n in mine if n not in known_names()] or mine
        return evenly(mine, [n for n in self.more_labels if n not in mine and n not in test_names()])


@cache
def _part(items: tuple[str, ...], more: tuple[str, ...], split: str) -> list[str]:
    return evenly(part(list(items), split), [x for x in more if split == "train" and x not in items])


@cache
def _wordings(items: tuple[str, ...], split: str) -> list[str]:
    return wordings(list(items), split)


LABEL_FILES = ("topics", "tone", "reviews", "news", "filler", "languages", "documents", "classes")


@cache
def known_names() -> frozenset[str]:
    """Returns the wordings of labels in the training part, without those of `data/more/`."""
    return frozenset(n for f in LABEL_FILES for s in bank(f).values() for n in _wordings(s.labels, "train"))


@cache
def test_names() -> frozenset[str]:
    return frozenset(n for f in LABEL_FILES for s in bank(f).values() for n in _wordings(s.labels, "test"))


@cache
def bank(name: str) -> dict[str, Section]:
    """Reads `data/NAME.txt`: sections headed `= key | wording; wording`, then one item a line (in word files several: `a | b`)."""
    more = _sections(name, MORE / f"{name}.txt")
    return {
        k: Section(k, tuple(labels), tuple(items), *(tuple(x) for x in more.get(k, ())))
        for k, (labels, items) in _sections(name, DATA / f"{name}.txt").items()
    }


def _sections(name: str, path: Path) -> dict[str, tuple[list[str], list[str]]]:
    """Returns, by key, the wordings and the items of a file; nothing if there is no such file."""
    sections: dict[str, tuple[list[str], list[str]]] = {}
    lines: list[str] = []
    key = ""
    for raw in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        line = raw.strip()
        if not line or line.startswith("# "):
            continue
        if line.startswith("= "):
            key, _, labels = line[2:].partition(" | ")
            key = key.strip()
            found, lines = sections.setdefault(key, ([], []))
            found += [w.strip() for w in labels.split(";") if w.strip()]
        elif name in WORD_FILES:
            lines.extend(words_of(line))
        elif name == "languages" or key in WORD_SECTIONS:
            lines.extend(x.strip() for x in line.split("|"))
        else:
            lines.append(line.replace("\\n", "\n"))
    return sections


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
    more_keys: tuple[str, ...] = ()
    more_phrases: tuple[str, ...] = ()
    """Phrases that only training uses."""

    def goes_by(self, name: str) -> bool:
        """Tells whether a key or a phrase means this field, in either part."""
        return name in self.keys + self.more_keys + self.phrases + self.more_phrases


@cache
def fields() -> dict[str, Field]:
    more = {slot: (_list(keys, ","), _list(phrases, ";")) for slot, keys, phrases in _field_lines(MORE / "fields.txt")}
    return {
        slot: Field(slot, kind, _list(keys, ","), _list(phrases, ";"), *more.get(slot, ()))
        for slot, kind, keys, phrases in _field_lines(DATA / "fields.txt")
    }


def _field_lines(path: Path) -> list[list[str]]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [[x.strip() for x in line.split(" : ")] for line in lines if line.strip() and not line.startswith("#")]


def _list(text: str, glue: str) -> tuple[str, ...]:
    return tuple(x.strip() for x in text.split(glue))


@cache
def _of_fields(split: str, what: str) -> frozenset[str]:
    return frozenset(x for f in fields().values() for x in _wordings(getattr(f, what), split))


@cache
def keys_of(slot: str, split: str) -> list[str]:
    """Returns names for keys. In training they include names made from the slot's phrases (`the e-mail address`: `e_mail_address`)."""
    mine = _wordings(fields()[slot].keys, split)
    if split == "test":
        return [k for k in mine if k not in _of_fields("train", "keys")] or mine
    plain = (re.sub(r"^(the|a|an) |'s|'", "", p.lower()) for p in phrases_of(slot, split))
    made = [re.sub(r"[^a-z]+", "_", p).strip("_") for p in plain if not p.startswith(PREPOSITIONS)]
    others = dict.fromkeys([*fields()[slot].more_keys, *(m for m in made if m.count("_") < 4)])
    return evenly(mine, [k for k in others if k not in mine and k not in _of_fields("test", "keys")])


PREPOSITIONS = ("in ", "on ", "at ", "by ", "to ", "from ", "until", "when", "where", "which", "what")


@cache
def phrases_of(slot: str, split: str) -> list[str]:
    mine = _wordings(fields()[slot].phrases, split)
    if split == "test":
        return [p for p in mine if p not in _of_fields("train", "phrases")] or mine
    others = (p for p in fields()[slot].more_phrases if p not in mine and p not in _of_fields("test", "phrases"))
    return evenly(mine, list(others))
