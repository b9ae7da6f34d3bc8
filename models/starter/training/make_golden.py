"""Writes `tests/starter/golden.jsonl`: prompts and answers with the tokens that training reads: `python make_golden.py`.

`tests/starter/tokens.test.ts` makes the same tokens with what serves the model, so the two cannot drift apart.
"""

from random import Random

from tokenizers import Tokenizer

import paths
from document_tasks import make_tasks
from documents import make_document
from prompt import Encoder
from skills import make_exercise
from tasks import dump

FILE = paths.ROOT / "tests" / "starter" / "golden.jsonl"


def main(texts: int = 60):
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
                ids, weights = encoder.branch(task)
                prompt = encoder.prompt(task)
                lines.append(
                    {
                        "task": task.body,
                        "prompt": prompt,
                        "answer": ids[len(prompt) :],
                        "chosen": [int(w > 0) for w in weights[len(prompt) :]],
                    }
                )
            if lines:
                out.write(
                    dump(
                        {
                            "context": document.text,
                            **({"turns": document.turns} if document.turns else {}),
                            "prefix": encoder.root + encoder.context(document.text, document.turns),
                            "tasks": lines,
                        }
                    )
                    + "\n"
                )


if __name__ == "__main__":
    main()
