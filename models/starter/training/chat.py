"""A little conversation: greetings, what the model is, questions about a text (`questions.py`), thinking when asked to."""

from random import Random

from banks import bank
from chance import choose
from conversations import Question
from questions import questions

Turn = tuple[str, str]

GREETED = "Hello! Give me a text and a question about it."
I_AM = "I am Assay Starter, a very small language model. I can decide and extract things from a text that you give me."
WELCOME = "You are welcome."
BYE = "Goodbye!"
SORRY = "I am too small for that. I only answer questions about a text that you give me."

SMALL_TALK = 0.85
"""Share of the chats without a text. They are short: of a batch's tokens they are a hundredth."""


def make_chat(r: Random, split: str) -> list[Turn]:
    """Turns without the system; the last is the assistant's."""
    return small_talk(r, split) if r.random() < SMALL_TALK else told_in_turn(r, split)


def small_talk(r: Random, split: str) -> list[Turn]:
    """One turn, at times behind a greeting that was a turn of its own."""
    turn = choose(r, (greeted, introduced, introduced, introduced, beyond, beyond, beyond, parted))(r, split)
    return [*(greeted(r, split) if r.random() < 0.2 else []), *turn]


def said(r: Random, split: str, what: str) -> str:
    return choose(r, bank("small-talk")[what].take(split))


def greeted(r: Random, split: str) -> list[Turn]:
    return [("user", said(r, split, "greeting")), ("assistant", GREETED)]


def introduced(r: Random, split: str) -> list[Turn]:
    return [("user", opened(r, split, said(r, split, "who"))), ("assistant", I_AM)]


def beyond(r: Random, split: str) -> list[Turn]:
    return [("user", opened(r, split, said(r, split, "beyond"))), ("assistant", SORRY)]


def parted(r: Random, split: str) -> list[Turn]:
    what, answer = choose(r, (("thanks", WELCOME), ("bye", BYE)))
    return [("user", said(r, split, what)), ("assistant", answer)]


def opened(r: Random, split: str, ask: str) -> str:
    """The question, often behind a greeting, at times in small letters or without its mark, as people type."""
    if r.random() < 0.5:
        greeting = said(r, split, "greeting")
        ask = f"{greeting}{'' if greeting[-1] in '!?.)' else choose(r, ('!', '.', ',', ''))} {ask}"
    if r.random() < 0.2:
        ask = ask.lower()
    return ask.rstrip("?.") if r.random() < 0.2 else ask


def told(r: Random, q: Question) -> tuple[str, str]:
    """A question and its answer, at times with a thought before it, as the template writes them."""
    if r.random() < 0.65:
        return q.ask, q.answer
    wish = choose(r, bank("small-talk")["think"].take("train"))
    return f"{q.ask} {wish}" if r.random() < 0.6 else f"{wish} {q.ask}", f"<think>\n{q.thought}\n</think>\n\n{q.answer}"


def told_in_turn(r: Random, split: str) -> list[Turn]:
    """One question about a text or two, one after the other. The text may stand behind the first question."""
    text, asked = questions(r, split)
    turns: list[Turn] = []
    for i, q in enumerate(r.sample(asked, min(len(asked), 1 + (r.random() < 0.4)))):
        ask, answer = told(r, q)
        if i == 0:
            ask = f"{text}\n\n{ask}" if r.random() < 0.4 else f"{ask}\n\n{text}"
        turns += [("user", ask), ("assistant", answer)]
    return turns


def told_apart(r: Random, split: str, most: int) -> tuple[str, list[tuple[str, str]]]:
    """A text, and so many questions at most behind it, each as if it were the only one, with their answers."""
    text, asked = questions(r, split)
    return text, [told(r, q) for q in r.sample(asked, min(len(asked), most))]
