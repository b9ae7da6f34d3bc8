"""Exercises in lists: several records with the same fields, to be listed, counted, searched and compared."""

from random import Random

import values
from chance import choose
from decisions import finish, yes_no
from documents import Document
from tasks import Task
from value_decisions import plain_number

RECORDS = (
    (("items", "products", "lines", "positions", "order_items"), (("product", "item", "name", "article"), "product"), (("quantity", "qty", "count", "pieces"), "int"), (("price", "amount", "cost", "total"), "amount")),
    (("products", "catalog", "offers", "goods"), (("name", "product", "title"), "product"), (("price", "amount", "cost"), "amount")),
    (("people", "contacts", "guests", "participants", "members"), (("name", "person", "full_name"), "person"), (("phone", "telephone", "number"), "phone")),
    (("people", "contacts", "users", "attendees"), (("name", "person", "who"), "person"), (("email", "mail", "address"), "email")),
    (("team", "employees", "staff", "people"), (("name", "person", "employee"), "person"), (("job", "role", "position"), "job")),
    (("meetings", "appointments", "events", "dates"), (("date", "day", "when"), "date"), (("time", "hour", "at"), "time"), (("place", "city", "where"), "city")),
    (("stops", "stations", "places", "trips"), (("city", "stop", "place"), "city"), (("time", "arrival", "hour"), "time")),
    (("invoices", "bills", "payments"), (("number", "id", "invoice"), "id"), (("amount", "total", "sum"), "amount"), (("date", "due", "due_date"), "date")),
    (("services", "servers", "hosts"), (("service", "name", "host"), "service"), (("ip", "address", "ip_address"), "ip")),
    (("companies", "vendors", "suppliers", "firms"), (("company", "name", "vendor"), "company"), (("city", "place", "location"), "city")),
    (("expenses", "costs", "fees"), (("what", "item", "product"), "product"), (("amount", "price", "sum"), "amount")),
)  # fmt: skip
GLUES = (
    (", ", "\n"),
    (": ", "\n"),
    (" - ", "\n"),
    (" | ", "\n"),
    (" ", "; "),
    (", ", "; "),
    (": ", ", "),
    ("\t", "\n"),
    (" for ", ", "),
    (" / ", "\n"),
)


def item_list(r: Random, split: str) -> tuple[Document, list[Task]]:
    lists, *columns = choose(r, RECORDS)
    heads = [(choose(r, keys), kind) for keys, kind in columns]
    if len(heads) > 2 and r.random() < 0.4:
        heads.pop(1 + int(r.random() * 2))
    rows = [[values.TYPES[kind](r, split) for _, kind in heads] for _ in range(2 + int(r.random() * 4))]
    rows = list({row[0]: row for row in rows}.values())
    if len(rows) < 2:
        return item_list(r, split)
    inner, outer = choose(r, GLUES)
    turned = r.random() < 0.25 and len(heads) == 2
    lines = [inner.join(reversed(row) if turned else row) for row in rows]
    bullet = choose(r, ("", "", "- ", "* ", "{}. ")) if outer == "\n" else ""
    lines = [bullet.format(i + 1) + line for i, line in enumerate(lines)]
    top = choose(r, ("", "", f"{choose(r, lists)}:", f"Our {choose(r, lists)}:", f"List of {choose(r, lists)}"))
    text = (top + ("\n" if outer == "\n" else " ") if top else "") + outer.join(lines)
    makers = (objects, strings, value_of, value_of, count, listed, extreme, first_last)
    tasks = [choose(r, makers)(r, lists, heads, rows, split) for _ in range(9)]
    return Document("list", text), [t for t in tasks if t]


def extract(r: Random, skill: str, what: str, schema: dict, answer: dict) -> Task:
    instruction = choose(r, ("Extract {}", "{}", "List {}.", "Find {}.", "all {}", "Get the {}")).format(what)
    return Task(skill, {"type": "extract", "instruction": instruction, "schema": schema}, answer)


def typed(value: str, kind: str) -> tuple[str, object]:
    return ("integer", int(value)) if kind == "int" else ("string", value)


def objects(r, lists, heads, rows, _split):
    name, what = choose(r, lists), choose(r, lists)
    columns = r.sample(range(len(heads)), 1 + int(r.random() * len(heads)))
    schema = {heads[i][0]: typed(rows[0][i], heads[i][1])[0] for i in columns}
    answer = [{heads[i][0]: typed(row[i], heads[i][1])[1] for i in columns} for row in rows]
    return extract(r, "list_objects", what, {name: [schema]}, {name: answer})


def strings(r, lists, heads, rows, _split):
    i = int(r.random() * len(heads))
    head, kind = heads[i]
    if kind == "int":
        return None
    name = choose(r, (head + "s", "all_" + head, head + "_list", "values"))
    return extract(r, "list_strings", f"{head}s", {name: ["string"]}, {name: [row[i] for row in rows]})


def value_of(r, _lists, heads, rows, _split):
    """Asks for a cell of the row that begins with a given cell, or the other way round."""
    i = 1 + int(r.random() * (len(heads) - 1))
    a, b = (0, i) if r.random() < 0.7 else (i, 0)
    if len({row[a] for row in rows}) < len(rows):
        return None
    row = choose(r, rows)
    ask = choose(
        r, ("What is the {1} of {0}?", "{0}: which {1}?", "Which {1} has {0}?", "{1} of {0}?", "Find the {1} for {0}.")
    ).format(row[a], heads[b][0].replace("_", " "))
    options = list(dict.fromkeys(r[b] for r in rows))
    if r.random() < 0.25:
        return finish(r, "list_free", ask, None, row[b])
    r.shuffle(options)
    return finish(r, "list_value", ask, options, row[b]) if len(options) > 1 else None


def count(r, lists, _heads, rows, _split):
    ask = choose(r, ("How many {} are there?", "How many {} are listed?", "Number of {}?", "Count the {}.")).format(
        choose(r, lists).replace("_", " ")
    )
    options = [str(x) for x in r.sample(range(1, 8), 4)]
    if str(len(rows)) not in options:
        options[0] = str(len(rows))
    r.shuffle(options)
    return finish(r, "count", ask, options, str(len(rows)))


def listed(r, lists, heads, rows, split):
    i = int(r.random() * len(heads))
    right = r.random() < 0.5
    value = choose(r, rows)[i] if right else values.TYPES[heads[i][1]](r, split)
    if right != any(value == row[i] for row in rows):
        return None
    options, answer = yes_no(r, right)
    return finish(
        r,
        "listed",
        choose(r, ("Is {} on the list?", "Is {} mentioned?", "Does the list have {}?", "Is {} among them?")).format(
            value
        ),
        options,
        answer,
    )


def extreme(r, _lists, heads, rows, _split):
    """Asks which row has the largest or the smallest value."""
    numeric = [i for i, (_, kind) in enumerate(heads) if kind in ("int", "amount")]
    if not numeric:
        return None
    i = choose(r, numeric)
    numbers = [plain_number(row[i]) for row in rows]
    if None in numbers or len(set(numbers)) < len(numbers):
        return None
    low = r.random() < 0.5
    best = rows[numbers.index((min if low else max)(numbers))][0]
    side = choose(r, ("lowest", "smallest", "least") if low else ("highest", "largest", "most"))
    if heads[i][1] == "amount" and r.random() < 0.5:
        ask = choose(
            r, ("What is cheapest?", "Which costs least?") if low else ("What is most expensive?", "Which costs most?")
        )
    else:
        ask = f"Which has the {side} {heads[i][0]}?"
    options = [row[0] for row in rows]
    r.shuffle(options)
    return finish(r, "list_extreme", ask, options, best)


def first_last(r, _lists, heads, rows, _split):
    first = r.random() < 0.5
    i = int(r.random() * len(heads))
    options = list(dict.fromkeys(row[i] for row in rows))
    if len(options) < len(rows):
        return None
    ask = choose(r, ("Which {} comes {}?", "What is the {1} {0}?", "{1} {0}?")).format(
        heads[i][0].replace("_", " "), "first" if first else "last"
    )
    answer = rows[0 if first else -1][i]
    r.shuffle(options)
    return finish(r, "list_first_last", ask, options, answer)
