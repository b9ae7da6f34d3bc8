"""Draws the values with which documents are filled, by type; each from one part of the data, with a seeded generator."""

from banks import bank
from chance import choose, digits, letters
from formats import amount, date, duration, identifier, phone, time
from names import address, city, company, email, invented, person, product, room, url, word

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
    "ip": lambda r, s: (
        f"{10 + int(r.random() * 240)}.{int(r.random() * 256)}.{int(r.random() * 256)}.{1 + int(r.random() * 254)}"
    ),
    "code": lambda r, s: choose(
        r,
        (
            f"E{digits(r, 3)}",
            f"{choose(r, '45')}0{digits(r, 1)}",
            f"ERR_{letters(r, 4)}",
            f"0x{digits(r, 2)}{letters(r, 1)}",
        ),
    ),
    "room": room,
    "username": lambda r, s: invented(r, s).lower() + choose(r, ("", digits(r, 2), "_" + digits(r, 1))),
}
