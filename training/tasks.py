"""Tasks about a document with their answers, in the very words of `lib/prompt/tasks.ts`."""

import json
from dataclasses import dataclass
from random import Random

import values
from banks import bank, fields, keys_of, phrases_of
from documents import MOOD, URGENCY, Document
from values import choose

Span = tuple[int, int]
"""Characters of an answer about which the model has a choice; the rest follows from the grammar."""


@dataclass
class Task:
    skill: str
    """The task as `lib/backend.ts` has it, without its name; a `schema` is shorthand or JSON Schema as a user sends it."""
    body: dict
    answer: dict

    def written(self) -> tuple[str, list[Span]]:
        """The answer as JSON text and what of it the model chooses."""
        return written(self.answer, self.body["type"] == "decide")


def dump(value) -> str:
    """As `JSON.stringify`."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def task_text(body: dict) -> str:
    if body["type"] == "decide":
        lines = [f"Question: {body['question']}"]
        if "options" in body:
            lines.append(f"Options: {dump(body['options'])}")
        if "instruction" in body:
            lines.append(f"Instruction: {body['instruction']}")
    else:
        lines = [f"Extract: {body['instruction']}"]
        if "keys" in body:
            lines.append(f"Keys: {dump(body['keys'])}")
        if "schema" in body:
            lines.append(f"Schema: {dump(body['schema'])}")
    return "\n".join(lines)


def written(answer: dict, decide: bool) -> tuple[str, list[Span]]:
    """An answer's text is put in tokens as a whole. The colon before a value belongs to the choice, for with it the token
    is chosen that also opens a string (`lib/grammar`); in front of a decision it does not, as only a string can follow."""
    out: list[str] = []
    spans: list[Span] = []
    at = 0

    def put(text: str):
        nonlocal at
        out.append(text)
        at += len(text)

    def write(value, begin: int):
        if isinstance(value, dict):
            for i, (key, item) in enumerate(value.items()):
                put(("{" if i == 0 else ",") + dump(key))
                start = at
                put(":")
                if i == 0 and begin >= 0:
                    spans.append((begin, begin + 2))
                write(item, start)
            put("}")
        elif isinstance(value, list):
            put("[")
            for i, item in enumerate(value):
                if i:
                    put(",")
                write(item, begin)
            put("]")
        else:
            put(dump(value))
            # A number ends with what follows it.
            spans.append((begin + 2 if decide else begin, at + (0 if isinstance(value, str) else 1)))

    write(answer, -1)
    return "".join(out), spans


# --- decisions -------------------------------------------------------------------------------------------------------

QUESTIONS = {
    "topic": ["What is the message about?", "Which category fits?", "Which topic does it belong to?", "What does the writer want help with?", "Pick the right category.", "Which team should handle this?", "Route this message.", "What is the main issue?", "What is the intent of the writer?", "Which label fits best?", "Where should this be forwarded?", "What kind of request is it?"],
    "urgency": ["How urgent is it?", "What is the priority?", "Which priority should it get?", "How soon is an answer needed?", "Pick the urgency.", "How pressing is this?", "Urgency?", "Priority of the message?"],
    "mood": ["How does the writer feel?", "What is the mood of the writer?", "What is the tone of the message?", "Which emotion is shown?", "How does the customer sound?", "Tone?", "What feeling does the text express?"],
    "opinion": ["What is the sentiment?", "Is the review positive or negative?", "How does the author rate it?", "What does the author think of it?", "Sentiment of the review?", "Is the writer content?", "Which opinion is expressed?", "How good is the rating?"],
    "news": ["What is the article about?", "Which section of the newspaper does it belong to?", "Topic of the text?", "Which subject is covered?", "What is the news about?", "Pick a heading for it.", "Which theme fits?", "Under which heading would you file this?"],
    "level": ["How severe is the log line?", "Which log level is it?", "What kind of event was logged?", "How serious is this entry?", "Severity?"],
    "language": ["Which language is the text written in?", "What language is this?", "Language of the text?", "In which language does the writer write?", "Detect the language.", "Name the language."],
    "kind": ["What kind of text is this?", "What type of document is it?", "Which kind of document is this?", "Classify the document.", "What is this text?", "Document type?"],
}
SOURCES = {"topic": "topics", "urgency": "tone", "mood": "tone", "opinion": "reviews", "news": "news", "level": "filler", "language": "languages", "kind": "documents"}
KEYS = {"urgency": URGENCY, "mood": MOOD, "opinion": ("positive", "negative", "mixed"), "level": ("ERROR", "WARN", "INFO", "DEBUG")}
YES_NO = [["yes", "no"], ["no", "yes"], ["Yes", "No"], ["true", "false"], ["No", "Yes"], ["false", "true"]]
INSTRUCTIONS = ["Choose exactly one.", "Pick the best fit.", "Answer with one of the options.", "Be careful.", "Think of what matters most.", "If unsure, take the most likely one.", "Read the whole text."]
CLOSE = {"topic": {frozenset(p) for p in (("return", "damage"), ("complaint", "praise"), ("account", "security"), ("account", "privacy"), ("product", "damage"), ("technical", "damage"), ("billing", "return"))}}


def label_choices(attribute: str) -> list[str]:
    return list(KEYS.get(attribute) or bank(SOURCES[attribute]))


def yes_no(r: Random, truth: bool) -> tuple[list[str], str]:
    options = choose(r, YES_NO)
    positive = next(o for o in options if o.lower() in ("yes", "true"))
    return options, positive if truth else next(o for o in options if o != positive)


def finish(r: Random, skill: str, question: str, options, value: str) -> Task:
    body = {"type": "decide", "question": question}
    if options is not None:
        body["options"] = options
    if r.random() < 0.08:
        body["instruction"] = choose(r, INSTRUCTIONS)
    return Task(skill, body, {"value": value})


def ask(r: Random, split: str, attribute: str) -> str:
    from banks import part

    question = choose(r, part(QUESTIONS[attribute], split))
    return question if r.random() < 0.85 else question.lower().rstrip("?.") + choose(r, ("?", "", "?"))


def decide_label(r: Random, d: Document, split: str) -> Task:
    attributes = [a for a in d.labels if a in QUESTIONS]
    if len(attributes) > 1 and "kind" in attributes and r.random() < 0.8:
        attributes.remove("kind")
    attribute = choose(r, attributes)
    truth = d.labels[attribute]
    source = bank(SOURCES[attribute])
    close = CLOSE.get(attribute, set())
    others = [k for k in label_choices(attribute) if k != truth and frozenset((k, truth)) not in close]
    r.shuffle(others)
    name = lambda key: choose(r, source[key].names(split))
    if r.random() < 0.22 and attribute not in ("kind",):
        asked = truth if r.random() < 0.5 else others[0]
        wording = name(asked)
        pattern = choose(r, ("Is this about {}?", "Does it belong to: {}?", "Would you label it “{}”?", "Does “{}” describe it?") if attribute in ("topic", "news") else ("Is it {}?", "Does “{}” describe it?", "Would you call it {}?"))
        options, value = yes_no(r, asked == truth)
        return finish(r, f"{attribute}_yes_no", pattern.format(wording), options, value)
    most = min(len(others), 11)
    count = min(most, 1 + int(r.random() * r.random() * 11)) if most > 3 else 1 + int(r.random() * most)
    truth_name = name(truth)
    options = [truth_name] + [name(k) for k in others[:count]]
    if r.random() < 0.1:
        options = [o.capitalize() for o in options]
        truth_name = truth_name.capitalize()
    options = list(dict.fromkeys(options))
    r.shuffle(options)
    return finish(r, attribute, ask(r, split, attribute), options, truth_name)


PRESENCE = ["Does the text give {}?", "Is {} mentioned?", "Does it say {}?", "Is there {} in the text?", "Can one find {} here?", "Is {} stated?"]
WHAT = ["What is {}?", "Find {}.", "{}?", "Tell me {}.", "Which is {}?", "State {}.", "What does the text give as {}?"]


def absent(r: Random, d: Document) -> str | None:
    """A field that the text surely lacks: none of its type stands in it."""
    present = {fields()[s].type for s in d.facts}
    free = [s for s, f in fields().items() if f.type not in present and not (f.type in RELATED and present & RELATED[f.type])]
    return choose(r, free) if free else None


RELATED = {"int": {"amount", "duration", "date", "time"}, "duration": {"date", "time"}, "weekday": {"date"}, "date": {"weekday", "time"}, "time": {"date"}, "country": {"address", "city"}, "address": {"city"}, "city": {"address", "country", "company"}, "company": {"email", "url", "product"}, "postcode": {"id", "address"}, "id": {"postcode"}, "username": {"person", "email"}, "person": {"username", "email"}, "url": {"email"}, "room": {"address"}, "product": {"service"}, "amount": {"int"}, "percent": {"int"}, "code": {"id"}, "job": set()}
NAMELESS = ("", "the ")


def decide_presence(r: Random, d: Document, split: str) -> Task | None:
    truth = r.random() < 0.5 and d.facts
    slot = choose(r, list(d.facts)) if truth else absent(r, d)
    if not slot or d.kind in ("review", "news") and fields()[slot].type in ("city", "product"):
        return None
    options, value = yes_no(r, bool(truth))
    return finish(r, "presence", choose(r, _part(PRESENCE, split)).format(choose(r, phrases_of(slot, split))), options, value)


def _part(items, split):
    from banks import part

    return part(items, split)


def similar(r: Random, d: Document, slot: str, split: str, count: int) -> list[str]:
    """Wrong answers: values of other slots in the same text, and values of the same type that are not in it."""
    truth, kind = d.facts[slot], fields()[slot].type
    here = [v for s, v in d.facts.items() if s != slot and v != truth and (r.random() < 0.6 or fields()[s].type == kind)]
    r.shuffle(here)
    made = [values.TYPES[kind](r, split) for _ in range(count)]
    mixed = here[: count // 2 + 1] + [m for m in made if m not in d.text]
    return list(dict.fromkeys(v for v in mixed if v != truth))[:count]


def decide_value(r: Random, d: Document, split: str) -> Task | None:
    slot = choose(r, list(d.facts))
    truth, phrase = d.facts[slot], choose(r, phrases_of(slot, split))
    x = r.random()
    if x < 0.25:
        wrong = similar(r, d, slot, split, 1)
        if not wrong:
            return None
        right = r.random() < 0.5
        options, value = yes_no(r, right)
        shown = truth if right else wrong[0]
        return finish(r, "value_yes_no", choose(r, _part(["Is {} {}?", "Is {1} {0}?", "Does the text give {} as {}?", "Is it right that {} is {}?", "{}: is it {}?", "{0} = {1}?"], split)).format(phrase, shown), options, value)
    question = choose(r, _part(WHAT, split)).format(phrase)
    question = question[0].upper() + question[1:]
    if x < 0.5:
        return finish(r, "value_free", question, None, truth)
    options = [truth, *similar(r, d, slot, split, 1 + int(r.random() * 5))]
    if len(options) < 2:
        return None
    r.shuffle(options)
    return finish(r, "value", question, options, truth)


# --- extraction ------------------------------------------------------------------------------------------------------

EXTRACT = ["{}", "Find {}.", "Extract {}.", "{} from the text", "Get {}.", "Give me {}.", "Pull out {}.", "Read {} from the text."]
WHOLE = ["the details", "all details", "the facts of the text", "the fields", "what the text says", "the data"]


def chosen_slots(r: Random, d: Document, most: int) -> list[str]:
    slots = list(d.facts)
    r.shuffle(slots)
    slots = slots[: 1 + int(r.random() * most)]
    for _ in range(3):
        if r.random() < 0.35 or not slots:
            other = absent(r, d)
            if other and other not in slots and not any(fields()[other].type == fields()[s].type for s in slots):
                slots.append(other)
    r.shuffle(slots)
    return slots


def key_name(r: Random, slot: str, split: str, taken) -> str | None:
    """A key for the slot; a word that could as well mean another fact of the text is left alone by its being taken."""
    key = choose(r, keys_of(slot, split))
    x = r.random()
    if x < 0.06:
        key = key.replace("_", " ")
    elif x < 0.12:
        head, *rest = key.split("_")
        key = head + "".join(p.capitalize() for p in rest)
    elif x < 0.15:
        key = key.upper()
    return None if key in taken else key


def extract_keys(r: Random, d: Document, split: str) -> Task | None:
    answer: dict = {}
    phrases = []
    for slot in chosen_slots(r, d, 4):
        key = key_name(r, slot, split, answer)
        if key and not ambiguous(key, slot, d):
            answer[key] = d.facts.get(slot)
            phrases.append(choose(r, phrases_of(slot, split)))
    if not answer:
        return None
    return Task("extract_keys", {"type": "extract", "instruction": instruction(r, phrases, split), "keys": list(answer)}, answer)


def ambiguous(key: str, slot: str, d: Document) -> bool:
    """Whether another fact of the text goes by the same name."""
    plain = key.lower().replace(" ", "_")
    return any(s != slot and plain in fields()[s].keys for s in d.facts)


def instruction(r: Random, phrases: list[str], split: str) -> str:
    what = choose(r, WHOLE) if r.random() < 0.4 or len(phrases) > 3 else ", ".join(phrases[:-1]) + (" and " if len(phrases) > 1 else "") + phrases[-1]
    text = choose(r, _part(EXTRACT, split)).format(what)
    return text[0].upper() + text[1:] if r.random() < 0.7 else text


GROUPS = [("buyer", ("customer", "email", "phone", "city")), ("party", ("company", "contact", "address")), ("item", ("product", "qty", "sku")), ("meeting", ("date", "time", "room")), ("place", ("address", "postcode", "city", "country")), ("payment", ("amount", "due_date")), ("source", ("service", "ip", "code"))]


def extract_schema(r: Random, d: Document, split: str) -> Task | None:
    """Shorthand: flat, with a nested object, or with a list of one object."""
    schema: dict = {}
    answer: dict = {}

    def put(s: dict, a: dict, slot: str):
        key = key_name(r, slot, split, a)
        if key is None or ambiguous(key, slot, d):
            return
        value = d.facts.get(slot)
        number = fields()[slot].type == "int" and r.random() < 0.7
        s[key] = "integer" if number else "string"
        a[key] = int(value) if number and value else value

    nested = [(n, [s for s in slots if s in d.facts]) for n, slots in GROUPS]
    nested = [(n, slots) for n, slots in nested if len(slots) > 1]
    if nested and r.random() < 0.6:
        name, slots = choose(r, nested)
        s, a = {}, {}
        for slot in slots:
            put(s, a, slot)
        if s:
            many = r.random() < 0.2
            schema[name + ("s" if many else "")] = [s] if many else s
            answer[name + ("s" if many else "")] = [a] if many else a
    for slot in chosen_slots(r, d, 3):
        if not nested or slot not in [x for _, ss in nested for x in ss]:
            put(schema, answer, slot)
    if not schema:
        return None
    return Task("extract_schema", {"type": "extract", "instruction": choose(r, ("Extract ", "Find ", "", "Get ")) + choose(r, WHOLE), "schema": schema}, answer)


MAKERS = [(decide_label, 5), (decide_presence, 1.5), (decide_value, 3), (extract_keys, 4.5), (extract_schema, 1)]


def make_tasks(r: Random, d: Document, split: str, count: int) -> list[Task]:
    tasks = []
    makers = [m for m, _ in MAKERS]
    weights = [w if m is not decide_label or any(a in QUESTIONS for a in d.labels) else 0 for m, w in MAKERS]
    if set(d.labels) == {"kind"}:
        weights[0] = 1
    if not d.facts:
        weights = [weights[0], 0.5, 0, 0.3, 0]
    for maker in r.choices(makers, weights, k=count):
        task = maker(r, d, split)
        if task:
            tasks.append(task)
    return tasks
