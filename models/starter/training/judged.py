"""Texts that authors wrote and judged by hand (`data/judged/*.txt`), and tasks about them.

= support                          a text begins; the word says what kind it is
Hello, this is Ann Lee …           the text, one line or several
~ Ann Lee : person                 a value that another of its type (`values.py`) may stand for, everywhere
? Is a refund wanted?; Refund? | *yes | no         a decision, its wordings, the options, the right one with a star
? How does the writer feel? | *angry; upset | calm | glad        an option's wordings
> customer; customer_name; name of the customer = Ann Lee        a field, its names, its value (null: the text lacks it)
"""

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from zlib import crc32

from authored import Wordings, check_swaps, exchange, read_swap, split_wordings
from banks import DATA
from chance import choose, early
from decisions import YES_NO, finish
from documents import Document
from tasks import Task


@dataclass
class Judged:
    kind: str
    text: str = ""
    swaps: dict[str, str] = field(default_factory=dict)
    decisions: list[tuple[Wordings, list[Wordings], int]] = field(default_factory=list)
    """For each decision: the wordings of the question, the wordings of each option, and the index of the right option."""
    fields: list[tuple[Wordings, str | None]] = field(default_factory=list)


def parse(source: str) -> list[Judged]:
    """Parses a file of judged texts. Raises ValueError that names the text if it is inconsistent."""
    found: list[Judged] = []
    for raw in source.splitlines():
        line = raw.rstrip()
        mark, rest = line[:2], line[2:].strip()
        if mark == "= ":
            found.append(Judged(rest))
        elif not found:
            continue
        elif mark == "~ ":
            literal, kind = read_swap(line)
            found[-1].swaps[literal] = kind
        elif mark == "? ":
            question, *options = (x.strip() for x in rest.split(" | "))
            right = [i for i, o in enumerate(options) if o.startswith("*")]
            if len(right) != 1 or len(options) < 2:
                raise ValueError(f"one option with a star is wanted: {line}")
            found[-1].decisions.append(
                (split_wordings(question), [split_wordings(o.lstrip("*")) for o in options], right[0])
            )
        elif mark == "> ":
            names, _, value = rest.partition(" = ")
            if not value:
                raise ValueError(f"a field without a value (null?): {line}")
            found[-1].fields.append((split_wordings(names), None if value.strip() == "null" else value.strip()))
        else:
            found[-1].text += ("\n" if found[-1].text else "") + line
    for text in found:
        text.text = text.text.strip()
        check(text)
    return found


def check(t: Judged) -> None:
    here = f"in the text that begins {t.text[:50]!r}"
    if not t.text or not t.decisions and not t.fields:
        raise ValueError(f"a text with tasks is wanted {here}")
    check_swaps(t.text, t.swaps)
    for names, value in t.fields:
        if not names or value is not None and value not in t.text:
            raise ValueError(f"> {names} = {value} does not stand {here} to the letter")
    for _, options, _ in t.decisions:
        words = [w for o in options for w in o]
        if len(set(words)) < len(words):
            raise ValueError(f"options that are the same: {options} {here}")


@cache
def judged(split: str) -> list[Judged]:
    """Returns the texts of one part. About every sixteenth belongs to the test part, chosen by a checksum, so that a text stays in its part
    when others are added."""
    every = [t for f in sorted((DATA / "judged").glob("*.txt")) for t in parse(f.read_text(encoding="utf-8"))]
    return [t for t in every if (crc32(t.text.encode()) % 16 == 7) == (split == "test")]


def test_texts() -> list[dict]:
    """Returns all tasks of the test part, with the first wordings, in the format of the test sets."""
    return [
        {
            "context": t.text,
            "tasks": [
                *(
                    {"type": "decide", "question": qs[0], "options": Random(qs[0]).sample([o[0] for o in options], len(options)), "expected": options[right][0],
                     "skill": "yes_no" if len(options) == 2 and options[right][0] in ("yes", "no") else "options"}
                    for qs, options, right in t.decisions
                ),
                *([{"type": "extract", "instruction": "the details", "keys": [n[0] for n, _ in t.fields],
                    "expected": {n[0]: v for n, v in t.fields}}] if t.fields else []),
            ],
        }
        for t in judged("test")
    ]  # fmt: skip


def swapped(r: Random, split: str, t: Judged) -> Judged:
    put = exchange(r, split, t.swaps)
    return Judged(
        t.kind,
        put(t.text),
        {},
        [([put(q) for q in qs], [[put(w) for w in o] for o in options], right) for qs, options, right in t.decisions],
        [(names, None if value is None else put(value)) for names, value in t.fields],
    )


def decide(r: Random, questions: Wordings, options: list[Wordings], right: int) -> Task | None:
    """Creates a decision. Some wrong options may be omitted, and yes and no may be worded otherwise."""
    words = [choose(r, o) for o in options]
    if len(set(words)) < len(words):
        return None
    truth = words[right]
    if {w.lower() for w in words} == {"yes", "no"}:
        words = list(choose(r, YES_NO))
        truth = next(w for w in words if (w.lower() in ("yes", "true")) == (truth.lower() == "yes"))
    elif len(words) > 2 and r.random() < 0.5:
        wrong = [w for w in words if w != truth]
        words = [truth, *r.sample(wrong, 1 + int(r.random() * len(wrong)))]
    r.shuffle(words)
    return finish(r, "judged", choose(r, questions), words, truth)


def extract(r: Random, fields: list[tuple[Wordings, str | None]]) -> Task:
    some = r.sample(fields, min(len(fields), 1 + int(r.random() * 5)))
    answer = {}
    for names, value in some:
        answer[early(r, names)] = value
    keys = list(answer)
    ask = choose(r, ("the details", "these fields", "everything asked for", "what the text says", f"the {keys[0]}"))
    body = {"type": "extract", "instruction": ask}
    if r.random() < 0.75:
        body["keys"] = keys
    else:
        body["schema"] = dict.fromkeys(keys, "string?")
    return Task("judged_fields", body, answer)


def judged_text(r: Random, split: str) -> tuple[Document, list[Task]]:
    t = swapped(r, split, choose(r, judged(split)))
    tasks = [decide(r, *choose(r, t.decisions)) for _ in range(6) if t.decisions]
    tasks += [extract(r, t.fields) for _ in range(3) if t.fields]
    tasks = [t for t in tasks if t]
    r.shuffle(tasks)
    return Document(t.kind, t.text), tasks


if __name__ == "__main__":
    import sys

    for name in sys.argv[1:]:
        texts = parse(Path(name).read_text(encoding="utf-8"))
        decisions = sum(len(t.decisions) for t in texts)
        print(f"{name}: {len(texts)} texts, {decisions} decisions, {sum(len(t.fields) for t in texts)} fields")
