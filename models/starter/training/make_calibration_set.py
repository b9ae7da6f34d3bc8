"""Writes the labels that the shipped calibration is fitted on: `python make_calibration_set.py`, then `assay calibrate work/calibration.jsonl`.

Templates, names and wordings of the test part, as in the held-out test set, but other texts: none of that set is among them. One JSON
object a line, as `assay calibrate` takes it. Questions with the options yes and no, in any case, are predicates, all others choices;
scores are those of `score_labels.py`.
"""

import json
from random import Random

import paths
from make_test_set import FILE as HELD_OUT
from make_test_set import make_texts
from score_labels import COUNT, make_score_labels
from tasks import dump

TEXTS = 500
FILE = paths.WORK / "calibration.jsonl"


def label(context: str, task: dict) -> dict:
    if task["type"] == "extract":
        shape = {key: task[key] for key in ("keys", "schema") if key in task}
        asked = {"type": "extract", "instructions": task["instruction"], **shape}
        return {"input": context, **asked, "label": task["expected"]}
    asked = "\n".join([task["question"], *([task["instruction"]] if task.get("instruction") else [])])
    if {option.lower() for option in task["options"]} == {"yes", "no"}:
        return {"input": context, "type": "predicate", "instructions": asked, "label": task["expected"].lower() == "yes"}
    choices = [{"value": value} for value in task["options"]]
    return {"input": context, "type": "choice", "instructions": asked, "choices": choices, "label": task["expected"]}


def main():
    with open(HELD_OUT, encoding="utf-8") as file:
        held_out = {json.loads(line)["context"] for line in file}
    texts = [text for text in make_texts(Random("calibration"), "test", TEXTS) if text["context"] not in held_out]
    FILE.parent.mkdir(parents=True, exist_ok=True)
    with open(FILE, "w", encoding="utf-8") as out:
        out.writelines(dump(label(text["context"], task)) + "\n" for text in texts for task in text["tasks"])
        out.writelines(dump(one) + "\n" for one in make_score_labels(Random("scores"), COUNT))


if __name__ == "__main__":
    main()
