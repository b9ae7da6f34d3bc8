"""Values that documents are filled with: names, numbers, dates and the like, drawn from one split and one seeded source."""

from random import Random

from banks import bank

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
]
VOWELS = ["a", "e", "i", "o", "u", "ai", "ea", "ou", "ie", "oa"]
CODAS = ["", "", "", "n", "r", "l", "s", "m", "ck", "nd", "rt", "x", "th"]
# Syllables that only test names begin with, so that an invented test name is never a training name.
TEST_ONSETS = {"train": [o for o in ONSETS if o not in ("gr", "v", "st")], "test": ["gr", "v", "st"]}


def choose(r: Random, items):
    return items[int(r.random() * len(items))]


def invented(r: Random, split: str) -> str:
    """A name that no list has, so that copying is learned from letters and not from a list."""
    name = choose(r, TEST_ONSETS[split]) + choose(r, VOWELS) + choose(r, CODAS)
    for _ in range(r.random() < 0.8):
        name += choose(r, ONSETS) + choose(r, VOWELS) + choose(r, CODAS)
    return name.capitalize()


def digits(r: Random, n: int) -> str:
    return "".join(choose(r, "0123456789") for _ in range(n))


def word(r: Random, split: str, section: str) -> str:
    return choose(r, bank("words")[section].take(split))


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
    return f"{first} {last}"


def company(r, split):
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


def phone(r, _split):
    return choose(
        r,
        (
            lambda: f"+{1 + int(r.random() * 98)} {digits(r, 3)} {digits(r, 4)}{digits(r, 3)}",
            lambda: f"({digits(r, 3)}) {digits(r, 3)}-{digits(r, 4)}",
            lambda: f"0{digits(r, 3)} {digits(r, 6)}",
            lambda: f"{digits(r, 3)}-{digits(r, 3)}-{digits(r, 4)}",
            lambda: f"0{digits(r, 2)}/{digits(r, 7)}",
            lambda: f"+{1 + int(r.random() * 98)}-{digits(r, 2)}-{digits(r, 4)}-{digits(r, 4)}",
            lambda: f"555-{digits(r, 4)}",
        ),
    )()


def letters(r, n):
    return "".join(choose(r, "ABCDEFGHJKLMNPQRSTUVWXYZ") for _ in range(n))


def identifier(r, _split):
    return choose(
        r,
        (
            lambda: f"{letters(r, 3)}-{digits(r, 4)}",
            lambda: f"{letters(r, 2)}{digits(r, 5)}",
            lambda: digits(r, 6),
            lambda: f"{digits(r, 4)}-{digits(r, 4)}",
            lambda: f"{letters(r, 1)}-{digits(r, 5)}",
            lambda: f"#{digits(r, 5)}",
            lambda: f"{letters(r, 2)}-{digits(r, 3)}-{letters(r, 1)}",
            lambda: f"20{digits(r, 2)}/{digits(r, 4)}",
            lambda: choose(r, ("INV", "ORD", "REF", "TK", "CASE", "PO", "RE", "A")) + "-" + digits(r, 5),
            lambda: "".join(choose(r, "0123456789abcdef") for _ in range(8)),
        ),
    )()


def date(r, split):
    day, month, year = 1 + int(r.random() * 28), 1 + int(r.random() * 12), 2019 + int(r.random() * 10)
    name = bank("words")["month"].items[month - 1]
    return choose(
        r,
        (
            f"{year}-{month:02}-{day:02}",
            f"{day} {name} {year}",
            f"{name} {day}, {year}",
            f"{day:02}/{month:02}/{year}",
            f"{day:02}.{month:02}.{year}",
            f"{day} {name}",
            f"{name} {day}",
            f"{day}.{month}.",
            f"{day}{'th' if 3 < day < 21 else ('th', 'st', 'nd', 'rd', 'th', 'th', 'th', 'th', 'th', 'th')[day % 10]} of {name}",
        ),
    )


def time(r, _split):
    h, m = int(r.random() * 24), choose(r, ("00", "15", "30", "45", "05", "10", "20", "40"))
    return choose(
        r,
        (
            f"{h:02}:{m}",
            f"{h % 12 + 1}:{m} {choose(r, ('am', 'pm'))}",
            f"{h % 12 + 1} {choose(r, ('am', 'pm'))}",
            f"{h}:{m}",
        ),
    )


def amount(r, _split):
    whole = choose(
        r,
        (
            1 + int(r.random() * 99),
            100 + int(r.random() * 900),
            1000 + int(r.random() * 9000),
            10000 + int(r.random() * 90000),
        ),
    )
    cents = choose(r, ("00", "50", "99", "90", digits(r, 2)))
    return choose(
        r,
        (
            f"${whole:,}.{cents}",
            f"{whole}.{cents} EUR",
            f"€{whole}",
            f"{whole} dollars",
            f"£{whole}.{cents}",
            f"{whole} EUR",
            f"${whole:,}",
            f"{whole},{cents} €",
            f"USD {whole:,}.{cents}",
            f"{whole} CHF",
            f"{whole} euros",
        ),
    )


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
    return f"{number} {name} {street}"


def duration(r, _split):
    return f"{2 + int(r.random() * 58)} {choose(r, ('minutes', 'hours', 'days', 'weeks', 'months', 'ms', 'seconds'))}"


def url(r, split):
    return f"{choose(r, ('www.', 'https://', 'https://www.'))}{invented(r, split).lower()}.{choose(r, ('com', 'net', 'org', 'de', 'io', 'shop'))}{choose(r, ('', '/help', '/shop', '/jobs', '/a/' + digits(r, 3)))}"


TYPES = {
    "person": person,
    "company": company,
    "city": city,
    "email": email,
    "phone": phone,
    "id": identifier,
    "date": date,
    "time": time,
    "amount": amount,
    "product": product,
    "address": address,
    "duration": duration,
    "url": url,
    "int": lambda r, s: str(2 + int(r.random() * (10 if r.random() < 0.6 else 200))),
    "country": lambda r, s: word(r, s, "country"),
    "postcode": lambda r, s: choose(
        r, (digits(r, 5), digits(r, 4), f"{letters(r, 2)}{digits(r, 1)} {digits(r, 1)}{letters(r, 2)}")
    ),
    "weekday": lambda r, s: choose(r, bank("words")["weekday"].items),
    "percent": lambda r, s: choose(
        r,
        (
            f"{1 + int(r.random() * 60)}%",
            f"{1 + int(r.random() * 60)} percent",
            f"{int(r.random() * 20)}.{digits(r, 1)}%",
        ),
    ),
    "job": lambda r, s: word(r, s, "job_title"),
    "service": lambda r, s: word(r, s, "service") + choose(r, ("", "-service", "-api", "-worker", f"-{digits(r, 2)}")),
    "ip": lambda r,
    s: f"{10 + int(r.random() * 240)}.{int(r.random() * 256)}.{int(r.random() * 256)}.{1 + int(r.random() * 254)}",
    "code": lambda r, s: choose(
        r,
        (
            f"E{digits(r, 3)}",
            f"{choose(r, '45')}0{digits(r, 1)}",
            f"ERR_{letters(r, 4)}",
            f"0x{digits(r, 2)}{letters(r, 1)}",
        ),
    ),
    "room": lambda r, s: choose(r, bank("filler")["room"].take(s)),
    "username": lambda r, s: invented(r, s).lower() + choose(r, ("", digits(r, 2), "_" + digits(r, 1))),
}
