"""Accuracy by skill without a server, with weights rounded as they are served: `python evaluate.py --name cpu`. `npm run bench -- quality` tells what is served.

    --sample 0.3           a part of each set, for a look at a run that goes on
    --set generated        fresh texts of the training part; `generated-test` of the test part; else held-out, natural;
                           `judged` those texts judged by hand that training leaves out
    --failures 30          prints wrong answers (never of the natural set, on which nothing is tuned)
    --confusion            for each skill the commonest wrong answers

Options are compared as the engine compares them, by the total log-probability of their tokens. A field counts as right when
each of its tokens is the most probable one behind the right fields before it; the server goes on behind its own answers and
masks what the grammar forbids, so its figures differ a little.
"""

import argparse
import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from random import Random

import numpy as np
import torch
from tokenizers import Tokenizer

import paths
from checkpoint import read
from judged import test_texts
from make_test_set import make_texts
from packing import tree_mask
from prompt import Encoder
from quantise import with_rounded
from tasks import Task, dump, task_text, written

SETS = paths.ROOT / "benchmarks" / "quality" / "sets"


@torch.no_grad()
def branch_scores(model, encoder: Encoder, context: str, tasks: list[Task]):
    """Returns for each task, with its answer: the answer's tokens, the log-probability of each, and the most probable token in its place,
    whether the model has a choice there or not."""
    shared = encoder.root + encoder.context(context)
    branches = [encoder.branch(t)[0] for t in tasks]
    tokens = np.array(shared + [t for b in branches for t in b])
    positions = np.concatenate([np.arange(len(shared)), *[len(shared) + np.arange(len(b)) for b in branches]])
    branch = np.concatenate([np.zeros(len(shared), int), *[np.full(len(b), i + 1) for i, b in enumerate(branches)]])
    put = lambda a: torch.from_numpy(np.ascontiguousarray(a)).to(model.cos.device)
    one = torch.ones(1, len(tokens), dtype=torch.long, device=model.cos.device)
    mask = tree_mask(one, put(branch)[None], one == 0)
    hidden = model.hidden(put(tokens)[None], put(positions)[None], mask)[0]
    found, at = [], len(shared)
    for b, task in zip(branches, tasks):
        begin = len(encoder.prompt(task)) - 1
        scores = model.logits(hidden[at + begin : at + len(b) - 1]).float().log_softmax(-1)
        target = put(np.array(b[begin + 1 :]))
        said = scores.gather(1, target[:, None])[:, 0]
        found.append((b[begin + 1 :], said.cpu().numpy(), scores.argmax(-1).cpu().numpy()))
        at += len(b)
    return found


def fields_right(encoder: Encoder, answer: dict, best: np.ndarray) -> list[tuple[str, str, bool]]:
    """Returns for each field the right value, the value that was predicted, and whether they are equal."""
    text, spans = written(answer, False)
    encoding = encoder.t.encode(text, add_special_tokens=False)
    # The choice of a bracket (where null is possible, too) and of the end of a list are not fields.
    spans = [(a, b) for a, b in spans if text[a:b] not in (":{", ":[", ",", "]")]
    found = []
    for a, b in spans:
        mine = [i for i, (s, e) in enumerate(encoding.offsets) if s < b and e > a]
        said = encoder.t.decode([int(best[i]) for i in mine], skip_special_tokens=False)
        found.append((text[a:b], said, all(best[i] == encoding.ids[i] for i in mine)))
    return found


@dataclass
class Result:
    """Numbers of right answers and of all answers, for `decide`, `fields`, and each skill."""

    counts: dict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    wrong: dict[str, Counter] = field(default_factory=lambda: defaultdict(Counter))
    failures: list[str] = field(default_factory=list)

    def count(self, kind: str, skill: str, right: bool, expected: str, said: str):
        for key in (kind, f"{kind} {skill}"):
            self.counts[key][0] += right
            self.counts[key][1] += 1
        if not right:
            self.wrong[f"{kind} {skill}"][f"{expected} -> {said}"] += 1


def evaluate(model, encoder: Encoder, texts: list[dict]) -> Result:
    """Evaluates texts in the format of the test sets, one object a line."""
    result = Result()
    for text in texts:
        tasks, owners = [], []
        for t in text["tasks"]:
            body = {k: v for k, v in t.items() if k not in ("expected", "corrected", "skill")}
            answers = [{"value": o} for o in t["options"]] if t["type"] == "decide" else [t["expected"]]
            owners.append((t, len(tasks), len(answers)))
            tasks += [Task("", body, a) for a in answers]
        scores = branch_scores(model, encoder, text["context"], tasks)
        for t, first, many in owners:
            skill = t.get("skill", "all")
            if t["type"] == "decide":
                # The tokens with which all options begin add the same to each total.
                totals = [float(said.sum()) for _, said, _ in scores[first : first + many]]
                said = t["options"][int(np.argmax(totals))]
                right = said == t["expected"]
                result.count("decide", skill, right, t["expected"], said)
                wrong = [] if right else [f"{t['expected']} -> {said}"]
            else:
                parts = fields_right(encoder, t["expected"], scores[first][2])
                for expected, said, right in parts:
                    result.count("fields", skill, right, expected, said)
                wrong = [f"{e} -> {s}" for e, s, right in parts if not right]
            if wrong:
                result.failures.append(
                    f"{text['context']}\n  [{skill}] {task_text(tasks[first].body)}\n  {dump(t['expected'])}\n  "
                    + "\n  ".join(wrong)
                )
    return result


def read_texts(name: str, sample: float) -> list[dict]:
    if name == "judged":
        return Random(1).sample(test_texts(), int(len(test_texts()) * sample))
    if name.startswith("generated"):
        return make_texts(Random(name), "test" if name.endswith("test") else "train", int(300 * sample))
    lines = (SETS / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    return [json.loads(line) for line in Random(1).sample(lines, int(len(lines) * sample))]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--name", default="cpu", help="run under work/")
    p.add_argument("--set", action="append", choices=("held-out", "natural", "generated", "generated-test", "judged"))
    p.add_argument("--sample", type=float, default=1.0, help="part of each set")
    p.add_argument("--failures", type=int, default=0, help="how many wrong answers to print")
    p.add_argument("--confusion", action="store_true", help="the commonest wrong answers of each skill")
    p.add_argument("--threads", type=int, default=1)
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    model, state = read(a.name)
    encoder = Encoder(Tokenizer.from_file(str(paths.TOKENIZER / "tokenizer.json")))
    for name in a.set or ("held-out", "natural"):
        with with_rounded(model), torch.autocast("cpu", torch.bfloat16):
            result = evaluate(model, encoder, read_texts(name, a.sample))
        for key, (right, total) in sorted(result.counts.items()):
            print(f"step {state['step']}  {name:14} {key:28} {100 * right / total:5.1f}% of {total}")
            if a.confusion and name != "natural" and " " in key:
                for what, n in result.wrong[key].most_common(6):
                    print(f"        {n:3} x {what}")
        if name != "natural":
            print("\n\n".join(Random(2).sample(result.failures, min(a.failures, len(result.failures)))))


if __name__ == "__main__":
    main()
