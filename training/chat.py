"""A little conversation: greetings, what the model is, questions about a text (`questions.py`), thinking when asked to."""

from random import Random

from chance import choose
from conversations import Question
from questions import questions

Turn = tuple[str, str]

GREETINGS = [
    "Hi",
    "Hello",
    "Hey",
    "Hello there!",
    "Good morning",
    "Good evening",
    "Hi!",
    "hello",
    "hey there",
    "Good day",
    "Hi, how are you?",
    "Hello, how is it going?",
]
GREETED = "Hello! Give me a text and a question about it."
WHO = [
    "Who are you?",
    "What are you?",
    "What is your name?",
    "what can you do?",
    "Tell me about yourself.",
    "Are you a human?",
    "Which model are you?",
    "What can you help me with?",
    "Introduce yourself.",
    "How big are you?",
    "What do you do?",
    "Who am I talking to?",
    "Can you help me?",
    "What is this?",
    "Are you an AI?",
    "Are you ChatGPT?",
]
I_AM = "I am Assay Starter, a very small language model. I can decide and extract things from a text that you give me."
THANKS = ["Thanks", "Thank you!", "thanks a lot", "Great, thank you.", "Bye", "Goodbye", "See you"]
WELCOME = {"t": "You are welcome.", "b": "Goodbye!"}
BEYOND = [
    "Write a poem about the sea.",
    "What is the capital of Peru?",
    "Who won the world cup?",
    "Solve this equation: 3x = 12",
    "Tell me a joke.",
    "Write a program in C.",
    "Translate this into Greek.",
    "What is the meaning of life?",
    "How do I bake bread?",
    "Explain relativity to me.",
    "What time is it?",
    "Who is the president?",
    "What is 2 + 2?",
    "How is the weather today?",
    "Recommend a good film.",
    "What do you think about love?",
]
SORRY = "I am too small for that. I only answer questions about a text that you give me."
THINK = [
    "Think first.",
    "Think step by step.",
    "Please think before you answer.",
    "Show your reasoning.",
    "Reason about it first.",
]


def make_chat(r: Random, split: str) -> list[Turn]:
    """Turns without the system; the last is the assistant's."""
    x = r.random()
    if x < 0.15:
        return [("user", choose(r, GREETINGS)), ("assistant", GREETED)]
    if x < 0.38:
        return [("user", opened(r, WHO)), ("assistant", I_AM)]
    if x < 0.5:
        return [("user", opened(r, BEYOND)), ("assistant", SORRY)]
    if x < 0.58:
        said = choose(r, THANKS)
        first = [("user", choose(r, GREETINGS)), ("assistant", GREETED)]
        return [
            *(first if r.random() < 0.6 else []),
            ("user", said),
            ("assistant", WELCOME["b" if said[0] in "BS" else "t"]),
        ]
    return told_in_turn(r, split)


def opened(r: Random, asks: list[str]) -> str:
    """One of the questions, often behind a greeting, at times in small letters or without its mark, as people type."""
    ask = choose(r, asks)
    if r.random() < 0.4:
        greeting = choose(r, GREETINGS)
        ask = f"{greeting}{'' if greeting[-1] in '!?' else choose(r, ('!', '.', ',', ''))} {ask}"
    if r.random() < 0.2:
        ask = ask.lower()
    return ask.rstrip("?.") if r.random() < 0.2 else ask


def told(r: Random, q: Question) -> tuple[str, str]:
    """A question and its answer, at times with a thought before it, as the template writes them."""
    if r.random() < 0.65:
        return q.ask, q.answer
    wish = choose(r, THINK)
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
