"""Labelled score questions for the shipped calibration: `python score_labels.py` writes work/score-labels.jsonl; needs only Python.

Each text says one thing on a scale of levels, in a sentence written for that level, among sentences that say nothing about it. No text of
the test sets is among them.
"""

import json
from random import Random

import paths

COUNT = 600
FILE = paths.WORK / "score-labels.jsonl"

# Each scale has wordings of the question, wordings of the levels from the lowest to the highest, and sentences for each level.
SCALES = [
    (
        ["How satisfied is the customer?", "How happy is the writer with the order?"],
        [["dissatisfied", "neutral", "satisfied"], ["unhappy", "neither", "happy"], ["1 star", "3 stars", "5 stars"]],
        [
            ["The lamp broke on the first day and nobody helped me.", "I am very disappointed and want my money back.",
             "This is the worst purchase of the year.", "Never again will I order here."],
            ["The lamp is as described, nothing more.", "It does what it should.", "It is an average lamp for the price.",
             "I have no strong opinion of it."],
            ["I love it and would buy it again at once.", "Everything was perfect, thank you!",
             "The best lamp that I have ever had.", "Wonderful quality, and it came a day early."],
        ],
    ),
    (
        ["How urgent is it?", "How soon must somebody act?"],
        [["not urgent", "soon", "at once"], ["low", "medium", "high"], ["can wait", "this week", "now"]],
        [
            ["There is no hurry, whenever you find the time.", "It can wait until next month.",
             "Only for your information, nothing has to be done.", "Some day we should look at it."],
            ["Please answer in the next few days.", "We need it by Friday.", "It would be good to have it this week.",
             "Please look at it before the end of the week."],
            ["The whole office is down, nobody can work!", "We need help right now.", "This is an emergency, call me immediately!",
             "Every minute costs us orders, act at once."],
        ],
    ),
    (
        ["How angry is the writer?"],
        [["calm", "annoyed", "furious"], ["not at all", "a little", "very"]],
        [
            ["Could you kindly tell me when it will come?", "Thank you for your patience with my questions.",
             "A small question about my order.", "I hope that you had a pleasant weekend."],
            ["It is a bit annoying that I have to ask again.", "I had expected an answer by now.",
             "This is the second time that the date has changed.", "I am not pleased that it takes so long."],
            ["This is outrageous, I have had enough of your lies!", "I am furious and will call my lawyer!",
             "You are thieves, give me back my money!", "What an unbelievable, shameless mess!"],
        ],
    ),
    (
        ["How severe is the damage?", "How badly is it damaged?"],
        [["none", "slight", "heavy", "total loss"], ["undamaged", "scratched", "broken", "destroyed"]],
        [
            ["The parcel came without any damage.", "Everything is whole and as new.", "Not a single mark on it."],
            ["There is a small scratch on one side.", "One corner has a tiny dent.", "The paint is a little rubbed off."],
            ["The glass is cracked and one leg is broken off.", "The door no longer closes and the motor is dead.",
             "Two of the four shelves are broken."],
            ["It burnt down completely.", "Nothing is left but splinters.", "It is crushed flat and beyond repair."],
        ],
    ),
    (
        ["How sure is the writer?", "How certain is it?"],
        [["unsure", "fairly sure", "certain"], ["doubtful", "likely", "certain"]],
        [
            ["I have no idea whether it was him.", "It may or may not be so.", "I really cannot say.", "I doubt it, but who knows."],
            ["I think that it was him.", "It is probably so.", "As far as I remember it was him.", "Most likely it is."],
            ["I know for certain, I saw it myself.", "There is no doubt at all.", "It is proven and signed.",
             "I am absolutely sure of it."],
        ],
    ),
    (
        ["How large is the order?", "How much was ordered?"],
        [["small", "medium", "large"], ["a few pieces", "some dozens", "thousands"]],
        [
            ["Please send us two lamps.", "We need three of them.", "One chair, please.", "Four cups would do."],
            ["We order 40 lamps.", "Please send 60 chairs.", "Thirty-six cups for the canteen.", "We take 48 of them."],
            ["We order 5,000 lamps.", "Please send twelve thousand cups.", "Eight thousand chairs for the stadium.",
             "We need 20,000 pieces."],
        ],
    ),
]

FILLER = [
    "My customer number is 4471.", "I wrote to you on Monday.", "The order was placed on 3 March.", "My address has not changed.",
    "Kind regards, Ines Roth.", "I am writing from our office in Bonn.", "You can reach me by e-mail.", "It is about the article L-20.",
    "I bought it in your shop on the web.", "A colleague gave me your address.",
]


def make_score_labels(r: Random, count: int) -> list[dict]:
    found: dict[str, dict] = {}
    while len(found) < count:
        label = make_label(r)
        found[json.dumps(label)] = label
    return list(found.values())


def make_label(r: Random) -> dict:
    questions, namings, sentences = r.choice(SCALES)
    names = r.choice([one for one in namings if len(one) == len(sentences)])
    level = r.randrange(len(names))
    text = r.sample(FILLER, r.randint(0, 3))
    text.insert(r.randint(0, len(text)), r.choice(sentences[level]))
    levels = [{"label": name} for name in names]
    return {"input": " ".join(text), "type": "score", "instructions": r.choice(questions), "levels": levels, "label": names[level]}


def main():
    FILE.parent.mkdir(parents=True, exist_ok=True)
    with open(FILE, "w", encoding="utf-8") as out:
        out.writelines(json.dumps(label, ensure_ascii=False) + "\n" for label in make_score_labels(Random("scores"), COUNT))


if __name__ == "__main__":
    main()
