"""Formats numbers, dates, times and sums in the ways in which people write them."""

from banks import bank
from chance import choose, digits, letters


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


HOURS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]


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


def duration(r, _split):
    x = r.random()
    if x < 0.15:
        return choose(
            r,
            (
                "half an hour",
                "a week",
                "two weeks",
                "one month",
                "three days",
                "an hour and a half",
                "two hours",
                "six months",
                "one year",
                "ten minutes",
                "a fortnight",
            ),
        )
    if x < 0.22:
        return f"{1 + int(r.random() * 9)} h {int(r.random() * 60)} min"
    if x < 0.28:
        return f"{1 + int(r.random() * 9)}-{2 + int(r.random() * 19)} days"
    return f"{2 + int(r.random() * 58)}{choose(r, (' minutes', ' hours', ' days', ' weeks', ' months', ' ms', ' seconds', ' min', ' years', 'ms', 's', 'h'))}"
