"""A little conversation: greetings, what the model is, questions about a text in a sentence, thinking when asked to."""

from random import Random

from absence import absent
from banks import phrases_of
from chance import choose
from conversations import draw_talk
from documents import make_document
from value_decisions import asks

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
GREETED = [
    "Hello! Give me a text and a question about it.",
    "Hi! Send me a text and tell me what you want to know.",
    "Hello! I answer short questions about a text.",
]
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
    """Turns without the system; the last is the assistant's. Reasoning stands in `<think>` tags as the template writes them."""
    x = r.random()
    if x < 0.14:
        return [("user", choose(r, GREETINGS)), ("assistant", choose(r, GREETED[:1]))]
    if x < 0.28:
        return [("user", opened(r, WHO)), ("assistant", I_AM)]
    if x < 0.36:
        return [("user", opened(r, BEYOND)), ("assistant", SORRY)]
    if x < 0.42:
        said = choose(r, THANKS)
        first = [("user", choose(r, GREETINGS)), ("assistant", GREETED[0])]
        return [*first, ("user", said), ("assistant", WELCOME["b" if said[0] in "BS" else "t"])]
    return talk(r, split) if r.random() < 0.6 else about_text(r, split)


def opened(r: Random, asks: list[str]) -> str:
    """One of the questions, often behind a greeting, at times in small letters or without its mark, as people type."""
    ask = choose(r, asks)
    if r.random() < 0.4:
        greeting = choose(r, GREETINGS)
        ask = f"{greeting}{'' if greeting[-1] in '!?' else choose(r, ('!', '.', ',', ''))} {ask}"
    if r.random() < 0.2:
        ask = ask.lower()
    return ask.rstrip("?.") if r.random() < 0.2 else ask


def talk(r: Random, split: str) -> list[Turn]:
    """One or two questions about a text that an author wrote with their answers; a thought stands before the answer where it is asked for."""
    text, questions = draw_talk(r, split)
    some = r.sample(questions, min(len(questions), 1 + (r.random() < 0.3)))
    turns: list[Turn] = []
    for i, (ask, answer, thought) in enumerate(some):
        if r.random() < 0.5:
            ask = f"{ask} {choose(r, THINK)}" if r.random() < 0.6 else f"{choose(r, THINK)} {ask}"
            answer = f"<think>\n{thought}\n</think>\n\n{answer}"
        if i == 0:
            ask = f"{text}\n\n{ask}" if r.random() < 0.7 else f"{ask}\n\n{text}"
        turns += [("user", ask), ("assistant", answer)]
    return turns


def about_text(r: Random, split: str) -> list[Turn]:
    d = make_document(r, split)
    if not d.facts:
        return [("user", choose(r, WHO)), ("assistant", I_AM)]
    slot = choose(r, list(d.facts))
    missing = r.random() < 0.15
    if missing:
        slot = absent(r, d) or slot
        missing = slot not in d.facts
    phrases = [p for p in phrases_of(slot, split) if not asks(p)]
    if not phrases:
        return about_text(r, split)
    phrase = choose(r, phrases)
    value = None if missing else d.facts[slot]
    ask = choose(r, ("What is {}?", "Tell me {}.", "Please give me {}.", "{}?")).format(phrase)
    ask = ask[0].upper() + ask[1:]
    think = r.random() < 0.5
    if think:
        ask = f"{ask} {choose(r, THINK)}" if r.random() < 0.6 else f"{choose(r, THINK)} {ask}"
    answer = (
        f"The text does not say {phrase}."
        if missing
        else f"According to the text, {phrase} is {value}{'' if value.endswith('.') else '.'}"
    )
    if think:
        found = "I do not find it in the text." if missing else f"I find {value} in the text."
        answer = f"<think>\nThe question asks for {phrase}. {found}\n</think>\n\n{answer}"
    user = f"{d.text}\n\n{ask}" if r.random() < 0.7 else f"{ask}\n\n{d.text}"
    return [("user", user), ("assistant", answer)]
