"""Accuracy on both test sets without a server: `python evaluate.py [--name cpu]`. `npm run bench -- quality` tells what is served.

Options are compared as the engine compares them, by the total log-probability of their tokens. A field counts as right when
each of its tokens is the most probable one behind the right fields before it; the server goes on behind its own answers and
masks what the grammar forbids, so its figures differ a little.
"""

import argparse
import json
from collections import defaultdict

import numpy as np
import torch
from tokenizers import Tokenizer

import paths
from checkpoint import read
from packing import tree_mask
from prompt import Encoder
from tasks import Task, written

SETS = paths.ROOT / "benchmarks" / "quality" / "sets"


@torch.no_grad()
def branch_scores(model, encoder: Encoder, context: str, tasks: list[Task]):
    """For each task with its answer: the log-probability of each token and whether it is the most probable, chosen or not."""
    shared = encoder.root + encoder.context(context)
    branches = [encoder.branch(t)[0] for t in tasks]
    tokens = np.array(shared + [t for b in branches for t in b])
    positions = np.concatenate([np.arange(len(shared)), *[len(shared) + np.arange(len(b)) for b in branches]])
    branch = np.concatenate([np.zeros(len(shared), int), *[np.full(len(b), i + 1) for i, b in enumerate(branches)]])
    put = lambda a: torch.from_numpy(np.ascontiguousarray(a)).to(model.cos.device)
    one = torch.ones(1, len(tokens), dtype=torch.long, device=model.cos.device)
    mask = tree_mask(one, put(branch)[None], one == 0)
    logits = model.logits(model.hidden(put(tokens)[None], put(positions)[None], mask))[0]
    scores = logits.float().log_softmax(-1)
    found, at = [], len(shared)
    for b in branches:
        rows = scores[at : at + len(b) - 1]
        target = put(np.array(b[1:]))
        said = rows.gather(1, target[:, None])[:, 0]
        found.append(
            (
                np.concatenate([[0.0], said.cpu().numpy()]),
                np.concatenate([[True], (rows.argmax(-1) == target).cpu().numpy()]),
            )
        )
        at += len(b)
    return found


def fields_right(encoder: Encoder, answer: dict, best: np.ndarray) -> tuple[int, int]:
    text, spans = written(answer, False)
    offsets = encoder.t.encode(text, add_special_tokens=False).offsets
    best = best[len(best) - len(offsets) :]
    # The choice of a bracket, where null is possible too, is no field.
    spans = [(a, b) for a, b in spans if text[a:b] not in (":{", ":[", ",", "]")]
    right = sum(all(ok for (s, e), ok in zip(offsets, best) if s < b and e > a) for a, b in spans)
    return right, len(spans)


def evaluate(model, encoder: Encoder, name: str) -> dict[str, list[int]]:
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])

    def count(keys, right, total):
        for key in keys:
            counts[key][0] += right
            counts[key][1] += total

    for line in (SETS / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")[:-1]:
        text = json.loads(line)
        tasks, owners = [], []
        for t in text["tasks"]:
            body = {k: v for k, v in t.items() if k not in ("expected", "skill")}
            answers = [{"value": o} for o in t["options"]] if t["type"] == "decide" else [t["expected"]]
            owners.append((t, len(tasks), len(answers)))
            tasks += [Task("", body, a) for a in answers]
        scores = branch_scores(model, encoder, text["context"], tasks)
        for t, first, many in owners:
            if t["type"] == "decide":
                totals = []
                for task, (said, _) in zip(tasks[first : first + many], scores[first : first + many]):
                    _, weights = encoder.branch(task)
                    totals.append(float(said[np.array(weights) > 0].sum()))
                right = t["options"][int(np.argmax(totals))] == t["expected"]
                count(("decide", "decide " + t.get("skill", "all")), int(right), 1)
            else:
                count(
                    ("fields", "fields " + t.get("skill", "all")),
                    *fields_right(encoder, t["expected"], scores[first][1]),
                )
    return counts


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--name", default="cpu", help="run under work/")
    a = p.parse_args()
    model, state = read(a.name)
    encoder = Encoder(Tokenizer.from_file(str(paths.TOKENIZER / "tokenizer.json")))
    for name in ("held-out", "natural"):
        for key, (right, total) in sorted(evaluate(model, encoder, name).items()):
            print(f"step {state['step']}  {name:9} {key:26} {100 * right / total:5.1f}% of {total}")


if __name__ == "__main__":
    main()
