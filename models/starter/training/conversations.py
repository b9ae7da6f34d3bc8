"""Questions about a text with answers in a sentence, written by hand (`data/conversations.txt`).

= about                            a text begins
The meeting moved to Friday …      the text, one line or several
~ Maria Silva : person             a value that another of its type (`values.py`) may stand for, everywhere
? When is it?; What day? ! It is on Friday. # The meeting moved to Friday.      wordings of a question, the answer, a thought that leads to it
"""

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random

from authored import check_swaps, exchange, read_swap, split_wordings
from banks import DATA
from chance import choose


@dataclass
class Talk:
    text: str = ""
    swaps: dict[str, str] = field(default_factory=dict)
    turns: list[tuple[list[str], str, str]] = field(default_factory=list)
    """The wordings of each question, its answer, and the reasoning that leads to it."""


def parse(source: str) -> list[Talk]:
    """Parses a file of conversations. Raises ValueError that names the line if it cannot be parsed."""
    found: list[Talk] = []
    for raw in source.splitlines():
        line = raw.rstrip()
        if line.startswith("= "):
            found.append(Talk())
        elif not found:
            continue
        elif line.startswith("~ "):
            literal, kind = read_swap(line)
            found[-1].swaps[literal] = kind
        elif line.startswith("? "):
            parts = re.fullmatch(r"\? (.+?) ! (.+?) # (.+)", line)
            if not parts:
                raise ValueError(f"? question ! answer # thought is wanted: {line}")
            found[-1].turns.append((split_wordings(parts[1]), parts[2], parts[3]))
        else:
            found[-1].text = (found[-1].text + "\n" + line).strip()
    for talk in found:
        if not talk.text or not talk.turns:
            raise ValueError(f"a text with questions is wanted: {talk.text[:50]!r}")
        check_swaps(talk.text, talk.swaps)
    return found


@cache
def talks() -> list[Talk]:
    return parse((DATA / "conversations.txt").read_text(encoding="utf-8"))


@dataclass
class Question:
    ask: str
    answer: str
    """The answer, as a sentence."""
    thought: str
    """The reasoning that leads to the answer."""


def written_talk(r: Random, split: str) -> tuple[str, list[Question]]:
    """Returns a text with exchanged values, and questions about it."""
    talk = choose(r, talks())
    put = exchange(r, split, talk.swaps)
    return put(talk.text), [
        Question(put(choose(r, asks)), put(answer), put(thought)) for asks, answer, thought in talk.turns
    ]


if __name__ == "__main__":
    import sys

    for name in sys.argv[1:]:
        found = parse(Path(name).read_text(encoding="utf-8"))
        print(f"{name}: {len(found)} texts, {sum(len(t.turns) for t in found)} questions")
