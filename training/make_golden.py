"""Writes `tests/starter/golden.jsonl`: prompts and answers with the tokens that training reads: `python make_golden.py`.

`tests/starter/tokens.test.ts` makes the same tokens with what serves the model, so the two cannot drift apart.
"""

from random import Random

from tokenizers import Tokenizer

import paths
from documents import make_document
from prompt import Encoder
from skills import make_exercise
from tasks import dump, make_tasks

FILE = paths.ROOT / "tests" / "starter" / "golden.jsonl"


def main(texts: int = 40):
    encoder = Encoder(Tokenizer.from_file(str(paths.TOKENIZER / "tokenizer.json")))
    r = Random("golden")
    FILE.parent.mkdir(parents=True, exist_ok=True)
    with open(FILE, "w", encoding="utf-8") as out:
        for i in range(texts):
            if i % 4 == 3:
                document, tasks = make_exercise(r, "train")
            else:
                document = make_document(r, "train")
                tasks = make_tasks(r, document, "train", 4)
            lines = []
            for task in tasks[:3]:
                ids, chosen = encoder.branch(task)
                answer = encoder.user(task.written()[0])
                lines.append(
                    {
                        "task": task.body,
                        "prompt": ids[: len(ids) - len(answer)],
                        "answer": answer,
                        "chosen": [int(c) for c in chosen[len(ids) - len(answer) :]],
                    }
                )
            if lines:
                out.write(dump({"context": document.text, "prefix": encoder.root + encoder.context(document.text), "tasks": lines}) + "\n")


if __name__ == "__main__":
    main()
