"""Creates short chats: greetings, what the model is, questions about a text (`questions.py`), and reasoning if it is asked for."""

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
"""Share of chats without a text. They are short: about a hundredth of a batch's tokens."""


def make_chat(r: Random, split: str) -> list[Turn]:
    """Returns the messages of a chat, without the system message; the last one is the assistant's."""
    return small_talk(r, split) if r.random() < SMALL_TALK else told_in_turn(r, split)


def small_talk(r: Random, split: str) -> list[Turn]:
    """Returns one question and its answer, sometimes after a greeting and its answer."""
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
    """Returns the question, often after a greeting, sometimes in lower case or without its question mark, as people type."""
    if r.random() < 0.5:
        greeting = said(r, split, "greeting")
        ask = f"{greeting}{'' if greeting[-1] in '!?.)' else choose(r, ('!', '.', ',', ''))} {ask}"
    if r.random() < 0.2:
        ask = ask.lower()
    return ask.rstrip("?.") if r.random() < 0.2 else ask


def told(r: Random, q: Question) -> tuple[str, str]:
    """Returns a question and its answer, sometimes with reasoning before the answer, as the chat template writes it."""
    if r.random() < 0.65:
        return q.ask, q.answer
    wish = choose(r, bank("small-talk")["think"].take("train"))
    return f"{q.ask} {wish}" if r.random() < 0.6 else f"{wish} {q.ask}", f"<think>\n{q.thought}\n</think>\n\n{q.answer}"


def told_in_turn(r: Random, split: str) -> list[Turn]:
    """Returns one or two questions about a text, one after the other, with their answers. The text is before or after the first question."""
    text, asked = questions(r, split)
    turns: list[Turn] = []
    for i, q in enumerate(r.sample(asked, min(len(asked), 1 + (r.random() < 0.4)))):
        ask, answer = told(r, q)
        if i == 0:
            ask = f"{text}\n\n{ask}" if r.random() < 0.4 else f"{ask}\n\n{text}"
        turns += [("user", ask), ("assistant", answer)]
    return turns


def told_apart(r: Random, split: str, most: int) -> tuple[str, list[tuple[str, str]]]:
    """Returns a text and at most `most` questions about it with their answers. Each question follows the text as if it were the only one."""
    text, asked = questions(r, split)
    return text, [told(r, q) for q in r.sample(asked, min(len(asked), most))]
