"""Names of people, companies, places and things. Some are invented, so that copying is learned from letters and not from lists."""

from functools import cache
from random import Random

from banks import bank
from chance import choose, digits, letters
from dictionary import common_words, meanings

ONSETS = [
    "b",
    "br",
    "c",
    "ch",
    "d",
    "dr",
    "f",
    "g",
    "gr",
    "h",
    "j",
    "k",
    "kl",
    "kr",
    "l",
    "m",
    "n",
    "p",
    "pr",
    "r",
    "s",
    "sh",
    "st",
    "t",
    "tr",
    "v",
    "w",
    "z",
    "bl",
    "cl",
    "fl",
    "sk",
    "sp",
    "th",
    "y",
]
MORE_ONSETS = ["", "", "gl", "kn", "pl", "sl", "sm", "sn", "sw", "tw", "wh", "qu", "ph", "sch", "kh", "zh", "ts", "dj", "x", "rh", "scr", "spl"]  # fmt: skip
"""Beginnings of syllables that only training uses: the more of them the model has copied, the less a new one matters."""


VOWELS = ["a", "e", "i", "o", "u", "ai", "ea", "ou", "ie", "oa"]


CODAS = ["", "", "", "n", "r", "l", "s", "m", "ck", "nd", "rt", "x", "th", "t", "ll", "ng", "ss", "k"]


# Syllables that only test names begin with, so that an invented test name is never a training name.
TEST_ONSETS = {"train": [o for o in [*ONSETS, *MORE_ONSETS] if o not in ("gr", "v", "st")], "test": ["gr", "v", "st"]}


@cache
def words_as_names() -> list[str]:
    """Returns common words that are not part of a name in any list."""
    known = {part.lower() for s in bank("words").values() for item in s.items for part in item.split()}
    return [w.capitalize() for w in common_words() if len(w) > 3 and w not in known]


def invented(r: Random, split: str) -> str:
    """Returns a name that is in no list, so that copying is learned from letters and not from lists. In training some are plain words,
    because the beginning of a name must not tell whether it is one."""
    if split == "train" and r.random() < 0.4:
        return choose(r, words_as_names())
    name = choose(r, TEST_ONSETS[split]) + choose(r, VOWELS) + choose(r, CODAS)
    for _ in range(0 if r.random() < 0.2 else 1 if r.random() < 0.85 else 2):
        name += choose(r, ONSETS) + choose(r, VOWELS) + choose(r, CODAS)
    if r.random() < 0.06:
        i = int(r.random() * len(name))
        name = name[:i] + FOREIGN.get(name[i], name[i]) + name[i + 1 :]
    return name.capitalize()


FOREIGN = dict(zip("aeiouncszyl", "áéíöüñçšžýł"))


@cache
def nouns(*groups: str) -> list[str]:
    """Returns the words of some of WordNet's groups, without words of the test part's lists."""
    kept = {part for s in bank("words").values() for item in s.take("test") for part in item.lower().split()}
    found = {w.lower() for m in meanings() if m.group in groups for w in m.words}
    return sorted(w for w in found if not kept & {w, *w.split()})


def title(words: str) -> str:
    return " ".join(w.capitalize() for w in words.split())


WIDER = {
    "product_noun": lambda r: choose(r, nouns("noun.artifact", "noun.food")),
    "product_adjective": lambda r: choose(r, nouns("adj.all", "noun.substance")),
    "company_word": lambda r: choose(r, words_as_names()),
    "company_end": lambda r: title(choose(r, nouns("noun.act", "noun.artifact", "noun.food", "noun.group"))) + choose(r, ("", "", "s")),
    "job_title": lambda r: choose(r, nouns("noun.person")),
    "service": lambda r: choose(r, nouns("noun.act", "noun.communication")).replace(" ", "-"),
    "street": lambda r: choose(r, words_as_names()),
}  # fmt: skip
"""In training, lists are extended by dictionary words: otherwise the model would recognise, for example, a company by the last word of its
name."""


def word(r: Random, split: str, section: str) -> str:
    if split == "train" and section in WIDER and r.random() < 0.5:
        return WIDER[section](r)
    return choose(r, bank("words")[section].take(split))


def room(r: Random, split: str) -> str:
    x = r.random() if split == "train" else 1
    if x < 0.25:
        return f"the {choose(r, nouns('adj.all', 'noun.artifact'))} {choose(r, ROOMS).lower()}"
    if x < 0.5:
        return f"{choose(r, ROOMS)} {choose(r, (digits(r, 1 + int(r.random() * 3)), letters(r, 1), letters(r, 1) + digits(r, 2), invented(r, split)))}"
    return choose(r, bank("filler")["room"].take(split))


ROOMS = ("Room", "Hall", "Office", "Lab", "Building", "House", "Wing", "Floor", "Stand", "Table", "Gate", "Suite", "Ward", "Bay", "Court", "Garden", "Corner", "Deck", "Tower", "Tent")  # fmt: skip


def first_name(r, split):
    return invented(r, split) if r.random() < 0.2 else word(r, split, "first_name")


def last_name(r, split):
    return invented(r, split) if r.random() < 0.4 else word(r, split, "last_name")


def person(r, split):
    x = r.random()
    first, last = first_name(r, split), last_name(r, split)
    if x < 0.15:
        return first
    if x < 0.25:
        return f"{choose(r, ('Mr', 'Ms', 'Mrs', 'Dr', 'Mr.', 'Dr.'))} {last}"
    if x < 0.30:
        return f"{first} {choose(r, 'ABCDEFGHJKLMNPRST')}. {last}"
    if x < 0.34:
        return f"{first} {last}-{last_name(r, split)}"
    if x < 0.37:
        return f"{first} {choose(r, ('van', 'de', 'von', 'da', 'van der', 'al', 'bin', 'di', 'ten', 'le'))} {last}"
    if x < 0.39:
        return f"{first} {choose(r, ('O', 'D', 'Mc', 'Mac'))}{choose(r, APOSTROPHE)}{last}".replace(
            "Mc'", "Mc"
        ).replace("Mac'", "Mac")
    if x < 0.42:
        return f"{first} {first_name(r, split)} {last}"
    if x < 0.44:
        return f"{choose(r, ('Prof.', 'Dr.', 'Sir', 'Frau', 'Herr', 'Señora', 'Madame', 'Captain', 'Judge'))} {last}"
    if x < 0.46:
        return f"{last}, {first}"
    if x < 0.48:
        return f"{first[0]}. {last}"
    if x < 0.49:
        return f"{first} {last} {choose(r, ('Jr.', 'III', 'MD', 'PhD'))}"
    return f"{first} {last}"


APOSTROPHE = "'"


def company(r, split):
    x = r.random()
    if x < 0.05:
        return f"{last_name(r, split)} & {last_name(r, split)}"
    if x < 0.08:
        return f"{letters(r, 2 + int(r.random() * 2))} {word(r, split, 'company_end')}"
    if x < 0.11:
        return f"{choose(r, ('University of', 'Bank of', 'The', 'Museum of', 'Institute of', 'Club', 'Hotel', 'Café', 'Studio'))} {city(r, split) if r.random() < 0.5 else invented(r, split)}"
    if x < 0.15:
        return invented(r, split) + choose(r, ("", ".com", "", "tec", "Soft", "Lab"))
    head = invented(r, split) if r.random() < 0.4 else word(r, split, "company_word")
    if r.random() < 0.2:
        head += " " + word(r, split, "company_word")
    return f"{head} {word(r, split, 'company_end')}"


def city(r, split):
    return invented(r, split) if r.random() < 0.3 else word(r, split, "city")


def email(r, split, name=None):
    first, last = (name.split() * 2)[:2] if name else (first_name(r, split), last_name(r, split))
    first, last = (x.lower().replace(".", "").replace("'", "") for x in (first, last))
    local = choose(
        r,
        (
            f"{first}.{last}",
            f"{first}{last}",
            f"{first[0]}.{last}",
            f"{first}_{last}",
            f"{last}{digits(r, 2)}",
            f"{first}{digits(r, 3)}",
            choose(r, ("info", "office", "sales", "hello", "contact", "support", "team")),
        ),
    )
    domain = word(r, split, "mail_domain")
    if r.random() < 0.4:
        domain = f"{invented(r, split).lower()}.{choose(r, ('com', 'net', 'org', 'de', 'eu', 'io', 'co'))}"
    return f"{local}@{domain}"


def product(r, split):
    noun = word(r, split, "product_noun")
    x = r.random()
    if x < 0.45:
        return f"{word(r, split, 'product_adjective')} {noun}"
    if x < 0.6:
        return f"{invented(r, split)} {noun}"
    if x < 0.75:
        return f"{invented(r, split)} {choose(r, ('X', 'S', 'Pro ', 'Mini ', 'M', 'Z-', 'Plus ', 'GT '))}{digits(r, choose(r, (1, 2, 3)))}"
    return noun


def address(r, split):
    street = choose(r, ("Street", "Road", "Avenue", "Lane", "Square", "Way", "Drive"))
    name = invented(r, split) if r.random() < 0.3 else word(r, split, "street")
    number = 1 + int(r.random() * 199)
    if r.random() < 0.25:
        return f"{invented(r, split)}{choose(r, ('strasse', 'weg', 'gasse', 'platz', 'straat', 'allee'))} {number}"
    x = r.random()
    if x < 0.12:
        return f"{number} {name} {choose(r, ('St', 'St.', 'Rd', 'Ave', 'Ave.', 'Blvd', 'Ct', 'Dr'))}{choose(r, ('', f', Apt {int(r.random() * 40) + 1}', f' {1 + int(r.random() * 9)}B'))}"
    if x < 0.2:
        return f"{choose(r, ('Rue', 'Via', 'Calle', 'Avenida', 'Rua', 'Piazza', 'ul.'))} {invented(r, split)} {number}"
    if x < 0.25:
        return f"{number}{choose(r, 'abc')} {name} {street}"
    return f"{number} {name} {street}"


def url(r, split):
    return f"{choose(r, ('www.', 'https://', 'https://www.'))}{invented(r, split).lower()}.{choose(r, ('com', 'net', 'org', 'de', 'io', 'shop'))}{choose(r, ('', '/help', '/shop', '/jobs', '/a/' + digits(r, 3)))}"
