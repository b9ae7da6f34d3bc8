"""Values that documents are filled with: names, numbers, dates and the like, drawn from one split and one seeded source."""

from random import Random

from banks import bank

ONSETS = "b br c ch d dr f g gr h j k kl kr l m n p pr r s sh st t tr v w z bl cl fl sk sp th y".split()
VOWELS = ["a", "e", "i", "o", "u", "ai", "ea", "ou", "ie", "oa"]
CODAS = ["", "", "", "n", "r", "l", "s", "m", "ck", "nd", "rt", "x", "th", "t", "ll", "ng", "ss", "k"]
# Syllables that only test names begin with, so that an invented test name is never a training name.
TEST_ONSETS = {"train": [o for o in ONSETS if o not in ("gr", "v", "st")], "test": ["gr", "v", "st"]}


def choose(r: Random, items):
    return items[int(r.random() * len(items))]


def early(r: Random, items):
    """One of a list whose first entries are the commonest."""
    return items[int(len(items) * r.random() ** 1.6)]


def invented(r: Random, split: str) -> str:
    """A name that no list has, so that copying is learned from letters and not from a list."""
    name = choose(r, TEST_ONSETS[split]) + choose(r, VOWELS) + choose(r, CODAS)
    for _ in range(0 if r.random() < 0.2 else 1 if r.random() < 0.85 else 2):
        name += choose(r, ONSETS) + choose(r, VOWELS) + choose(r, CODAS)
    if r.random() < 0.06:
        i = int(r.random() * len(name))
        name = name[:i] + FOREIGN.get(name[i], name[i]) + name[i + 1 :]
    return name.capitalize()


FOREIGN = dict(zip("aeiouncszyl", "áéíöüñçšžýł"))


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
    if x < 0.37:
        return f"{first} {choose(r, ('van', 'de', 'von', 'da', 'van der', 'al', 'bin', 'di', 'ten', 'le'))} {last}"
    if x < 0.39:
        return f"{first} {choose(r, ('O', 'D', 'Mc', 'Mac'))}{choose(r, APOSTROPHE)}{last}".replace("Mc'", "Mc").replace("Mac'", "Mac")
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
            lambda: f"+{1 + int(r.random() * 98)} ({digits(r, 3)}) {digits(r, 3)} {digits(r, 2)} {digits(r, 2)}",
            lambda: f"0{digits(r, 1)} {digits(r, 2)} {digits(r, 2)} {digits(r, 2)} {digits(r, 2)}",
            lambda: f"00{digits(r, 2)} {digits(r, 3)} {digits(r, 6)}",
            lambda: f"{digits(r, 3)}.{digits(r, 3)}.{digits(r, 4)}",
            lambda: f"+{1 + int(r.random() * 98)}{digits(r, 10)}",
            lambda: f"0{digits(r, 3)}-{digits(r, 5)}",
            lambda: f"1-800-{digits(r, 3)}-{digits(r, 4)}",
            lambda: f"{digits(r, 3)} {digits(r, 4)}",
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
            lambda: f"{digits(r, 3)}-{digits(r, 7)}-{digits(r, 7)}",
            lambda: f"{letters(r, 1)}{digits(r, 1)}{letters(r, 1)}-{digits(r, 3)}",
            lambda: f"{letters(r, 2)}/{digits(r, 3)}/{digits(r, 2)}",
            lambda: f"{letters(r, 4)}{digits(r, 4)}",
            lambda: f"1Z{digits(r, 6)}",
            lambda: f"{letters(r, 2).lower()}-{digits(r, 4)}{choose(r, 'abcdx')}",
            lambda: f"{letters(r, 3)}_{digits(r, 3)}",
            lambda: f"{digits(r, 2)}.{digits(r, 3)}.{digits(r, 2)}",
            lambda: f"No. {digits(r, 4)}",
            lambda: digits(r, 8 + int(r.random() * 3)),
            lambda: f"{letters(r, 2)} {digits(r, 6)}",
            lambda: f"{digits(r, 4)}{letters(r, 2)}",
        ),
    )()


def ordinal(day: int) -> str:
    return f"{day}{'th' if 3 < day < 21 else {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th')}"


def date(r, split):
    day, month, year = 1 + int(r.random() * 28), 1 + int(r.random() * 12), 2019 + int(r.random() * 10)
    name = bank("words")["month"].items[month - 1]
    short = name[:3]
    day_name = choose(r, bank("words")["weekday"].items)
    return choose(
        r,
        (
            f"{month}/{day}/{year}",
            f"{year}/{month:02}/{day:02}",
            f"{day:02}-{month:02}-{year}",
            f"{day} {short} {year}",
            f"{short} {day}",
            f"{day}-{short}-{year}",
            f"{day_name}, {day} {name}",
            f"{day_name}, {name} {day}",
            f"{day_name[:3]} {day} {short}",
            f"{name} {year}",
            f"{day}/{month}",
            f"the {ordinal(day)} of {name}",
            f"{name} {ordinal(day)}",
            f"{name} {ordinal(day)}, {year}",
            f"{day}. {name} {year}",
            f"{day}.{month}.{year % 100:02}",
            f"{year}-{month:02}-{day:02}",
            f"{day} {name} {year}",
            f"{name} {day}, {year}",
            f"{day:02}/{month:02}/{year}",
            f"{day:02}.{month:02}.{year}",
            f"{day} {name}",
            f"{name} {day}",
            f"{day}.{month}.",
            f"{ordinal(day)} of {name}",
        ),
    )


HOURS = "one two three four five six seven eight nine ten eleven twelve".split()


def time(r, _split):
    h, m = int(r.random() * 24), choose(r, ("00", "15", "30", "45", "05", "10", "20", "40"))
    return choose(
        r,
        (
            f"{h:02}:{m}",
            f"{h % 12 + 1}:{m} {choose(r, ('am', 'pm'))}",
            f"{h % 12 + 1} {choose(r, ('am', 'pm', 'a.m.', 'p.m.', 'AM', 'PM'))}",
            f"{h % 12 + 1}{choose(r, ('am', 'pm'))}",
            f"{h}.{m}",
            f"{h}h{m}",
            f"{h % 12 + 1} o'clock",
            f"{choose(r, ('half past', 'quarter past', 'quarter to'))} {choose(r, HOURS)}",
            choose(r, ("noon", "midnight")),
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
            f"CHF {whole}",
            f"{whole:,} USD",
            f"EUR {whole:,}",
            f"¥{whole}",
            f"{whole}.{cents} zł",
            f"{whole} kr",
            f"Rs {whole:,}",
            f"R$ {whole},{cents}",
            f"{whole:,}".replace(",", ".") + f",{cents} €",
            f"{1 + int(r.random() * 90)}.{1 + int(r.random() * 9)} million {choose(r, ('dollars', 'euros', 'pounds'))}",
            f"{whole} {choose(r, ('pounds', 'dollars', 'francs', 'crowns', 'yen'))}",
            f"${1 + int(r.random() * 400)}k",
            f"${whole}.{cents}",
            f"{cents} cents" if cents != "00" else "5 cents",
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
    x = r.random()
    if x < 0.12:
        return f"{number} {name} {choose(r, ('St', 'St.', 'Rd', 'Ave', 'Ave.', 'Blvd', 'Ct', 'Dr'))}{choose(r, ('', f', Apt {int(r.random() * 40) + 1}', f' {1 + int(r.random() * 9)}B'))}"
    if x < 0.2:
        return f"{choose(r, ('Rue', 'Via', 'Calle', 'Avenida', 'Rua', 'Piazza', 'ul.'))} {invented(r, split)} {number}"
    if x < 0.25:
        return f"{number}{choose(r, 'abc')} {name} {street}"
    return f"{number} {name} {street}"


def duration(r, _split):
    x = r.random()
    if x < 0.15:
        return choose(r, ("half an hour", "a week", "two weeks", "one month", "three days", "an hour and a half", "two hours", "six months", "one year", "ten minutes", "a fortnight"))
    if x < 0.22:
        return f"{1 + int(r.random() * 9)} h {int(r.random() * 60)} min"
    if x < 0.28:
        return f"{1 + int(r.random() * 9)}-{2 + int(r.random() * 19)} days"
    return f"{2 + int(r.random() * 58)}{choose(r, (' minutes', ' hours', ' days', ' weeks', ' months', ' ms', ' seconds', ' min', ' years', 'ms', 's', 'h'))}"


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
