"""Trains the model: `python train.py config/cpu.json`. Goes on from the latest checkpoint of the same name; `prune.py` writes the first one.

Runs on a GPU where there is one (CUDA, bfloat16), else on the CPU. What a step reads depends on the seed and the step's
number alone, so a run that was interrupted goes on as if it had not been.
"""

import argparse
import json
import math
import signal
import time
from collections import defaultdict, deque
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from itertools import count, islice
from multiprocessing import get_context
from pathlib import Path
from random import Random

import numpy as np
import torch
from tokenizers import Tokenizer

import paths
from checkpoint import write
from embedding import Table
from mean import Mean
from model import EMBED, Model, Shape, weighted_loss
from native import Step
from packing import Batch, Mix, Packer, tree_mask
from prompt import Encoder
from quantise import with_rounded


def rate(step: int, done: float, c: dict) -> float:
    """Returns the factor on the learning rates: warm-up, constant, then linear to zero over the last part (`decay`); smaller if training
    continues from the mean of its weights (`average`)."""
    a = c.get("average")
    most = a["then_rate"] if a and done >= a["until"] else 1.0
    return most * min(1.0, (step + 1) / c["warmup"], max(0.0, (1 - done) / c["decay"]))


def stage_mix(c: dict, stage: dict) -> Mix:
    """Returns the mix of a stage: what all stages of a configuration share, and what is the stage's own."""
    return Mix(**(c["mix"] | stage["mix"]))


packer: Packer
"""Packer of this process. The training process creates its batches itself if there are no worker processes."""


def load_encoder() -> Encoder:
    return Encoder(Tokenizer.from_file(str(paths.TOKENIZER / "tokenizer.json")))


def prepare_worker():
    global packer
    packer = Packer(load_encoder(), "train")


def make_batch(r: Random, mix: Mix, window: int) -> Batch:
    return packer.batch(r, mix).window(r, window, packer.encoder.size)


class Run:
    def __init__(self, c: dict, name: str):
        self.c, self.name = c, name
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        torch.manual_seed(c["seed"])
        if self.device == "cpu":
            torch.set_num_threads(c["threads"])
        self.encoder = load_encoder()
        self.folder = paths.WORK / name
        s = torch.load(self.folder / "last.pt", map_location=self.device, weights_only=True)
        self.shape = Shape(**s["shape"])
        if self.shape != Shape(vocab_size=self.encoder.size, **c["shape"]):
            raise ValueError(
                f"{self.folder}/last.pt has another shape than {name}'s configuration: begin again with prune.py"
            )
        self.window = min(c["window"], self.encoder.size)
        # During training the model has only the embedding rows of one step.
        self.model = Model(replace(self.shape, vocab_size=self.window))
        self.model.load_state_dict({k: v for k, v in s["model"].items() if k != EMBED}, strict=False)
        self.model.to(self.device)
        self.table = Table(s["model"][EMBED], c["optimizer"]["table_lr"])
        self.mean = Mean(**s["mean"]) if "mean" in s else Mean()
        self.optimizer = torch.optim.AdamW(
            [p for n, p in self.model.named_parameters() if n != EMBED],
            lr=c["optimizer"]["adam_lr"], betas=(0.9, 0.98), weight_decay=c["optimizer"]["weight_decay"], fused=True,
        )  # fmt: skip
        self.base = [[g["lr"] for g in o.param_groups] for o in self.every_optimizer()]
        for o, state in zip(self.every_optimizer(), s["optimizers"]):
            o.load_state_dict(state)
        self.step, self.tokens, self.seconds = s["step"], s["tokens"], s["seconds"]
        print(f"begins at step {self.step}", flush=True)
        self.native = Step(self.model, c["threads"]) if c.get("native") and self.device == "cpu" else None
        self.hidden = torch.compile(self.model.hidden) if c["compile"] else self.model.hidden

    def every_optimizer(self) -> list[torch.optim.Optimizer]:
        return [self.optimizer, self.table.optimizer]

    def weights(self) -> dict[str, torch.Tensor]:
        return {**self.model.state_dict(), EMBED: self.table.all.detach()}

    @torch.no_grad()
    def average(self, done: float):
        """Adds the weights to a mean during a part of training, and continues from the mean after that part. Also stores the mean as a run
        of its own (`blend.py`)."""
        a = self.c["average"]
        if a["from"] <= done < a["until"] and self.step % a["every"] == 0:
            self.mean.add(self.weights())
        if done >= a["until"] and self.mean.samples:
            self.save(f"{self.name}-mean")
            for k, w in self.weights().items():
                w.copy_(self.mean.weights[k])
            self.mean = Mean()

    def save(self, name: str):
        state = {
            "model": self.weights(), "optimizers": [o.state_dict() for o in self.every_optimizer()], "shape": self.shape.as_dict(),
            "step": self.step, "tokens": self.tokens, "seconds": self.seconds,
        }  # fmt: skip
        if self.mean.samples:
            state["mean"] = self.mean.as_dict()
        write(name, state)

    def mix(self, step: int) -> Mix:
        return stage_mix(self.c, next(s for s in self.c["stages"] if step < s["until"]))

    def batches(self):
        """Yields the batch of each step from here on, in order and without end. With `workers`, other processes create them in advance."""
        workers = self.c.get("workers", 0)
        steps = count(self.step)
        if workers == 0:
            prepare_worker()
            for step in steps:
                yield make_batch(*self.source(step))
            return
        with ProcessPoolExecutor(workers, get_context("spawn"), prepare_worker) as pool:
            ahead = deque(pool.submit(make_batch, *self.source(s)) for s in islice(steps, 4 * workers))
            while ahead:
                yield ahead.popleft().result()
                ahead.extend(pool.submit(make_batch, *self.source(s)) for s in islice(steps, 1))

    def source(self, step: int) -> tuple[Random, Mix, int]:
        return Random(f"{self.c['seed']}/{step}"), self.mix(step), self.window

    @torch.no_grad()
    def show(self, ids: np.ndarray) -> torch.Tensor:
        """Copies the embedding rows of these tokens into the model."""
        places = torch.from_numpy(ids).to(self.device)
        self.model.model.embed_tokens.weight.copy_(self.table.rows(places))
        return places

    def forward(self, b: Batch) -> torch.Tensor:
        """Returns the logits of the chosen tokens: [chosen, vocab]."""
        put = lambda a: torch.from_numpy(a).to(self.device, non_blocking=True)
        with torch.autocast(self.device, torch.bfloat16):
            mask = tree_mask(put(b.context), put(b.branch), put(b.rooted))
            hidden = self.hidden(put(b.tokens), put(b.positions), mask)
            return self.model.logits(hidden.flatten(0, 1)[put(b.index)])

    def gradients(self, b: Batch, round_weights: bool) -> float:
        """Sets the gradients of the batch's weighted mean loss, with weights as they are or rounded as they are served. Returns the loss."""
        if self.native:
            seed = (self.c["seed"] << 40) + (self.step << 8)
            return self.native(b, round_weights, self.c["backward_share"], seed)
        put = lambda a: torch.from_numpy(a).to(self.device)
        with with_rounded(self.model) if round_weights else nullcontext():
            loss = weighted_loss(self.forward(b), put(b.target), put(b.weight))
            loss.backward()
        return loss.item()

    def train(self, minutes: float | None):
        """Trains to the last step or, if `minutes` is given, until training has taken this many minutes in all."""
        c = self.c
        began = saved = time.monotonic()
        window: dict[str, float] = defaultdict(float)
        for b in self.batches():
            done = self.seconds / (60 * minutes) if minutes else self.step / c["steps"]
            if done >= 1:
                break
            if "average" in c:
                self.average(done)
            for o, base in zip(self.every_optimizer(), self.base):
                for g, lr in zip(o.param_groups, base):
                    g["lr"] = lr * rate(self.step, done, c)
            ids = self.show(b.ids)
            loss = self.gradients(b, round_weights=done >= c["rounded_from"])
            norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), c["optimizer"]["clip"])
            if not math.isfinite(loss) or not math.isfinite(norm):
                raise RuntimeError(
                    f"loss is {loss}, the gradients' norm {norm} at step {self.step}; the last checkpoint is sound"
                )
            self.table.step(ids, self.model.model.embed_tokens.weight.grad)
            self.optimizer.step()
            self.model.zero_grad(set_to_none=True)
            self.step += 1
            self.tokens += b.tokens.size
            now = time.monotonic()
            self.seconds += now - began
            began = now
            window["loss"] += loss
            window["norm"] += norm.item()
            window["n"] += 1
            if self.step % 20 == 0:
                n = window["n"]
                line = {
                    "step": self.step, "loss": round(window["loss"] / n, 4), "norm": round(window["norm"] / n, 2),
                    "tokens": self.tokens, "seconds": round(self.seconds), "tok_s": round(self.tokens / self.seconds),
                }  # fmt: skip
                window.clear()
                if self.step % c["evaluate_every"] == 0:
                    line["test"] = self.evaluate("test")
                    line["train"] = self.evaluate("train")
                with (self.folder / "log.jsonl").open("a", encoding="utf-8") as log:
                    print(json.dumps(line), file=log)
                print(json.dumps(line), flush=True)
            if time.monotonic() - saved > c["checkpoint_every_s"]:
                self.save(self.name)
                saved = time.monotonic()
        self.save(self.name)

    @torch.no_grad()
    def evaluate(self, split: str, batches: int = 6) -> dict:
        """Returns, by skill, the share of answers of which every chosen token is the most probable one. For options this is stricter than
        the engine, which compares total probabilities."""
        source, mix = Packer(self.encoder, split), self.mix(self.step)
        right: dict[str, list[bool]] = defaultdict(list)
        for i in range(batches):
            r = Random(f"evaluation/{i}")
            b = source.batch(r, mix).window(r, self.window, self.encoder.size)
            self.show(b.ids)
            hit = (self.forward(b).argmax(-1).cpu() == torch.from_numpy(b.target)).numpy()
            ok = [True] * len(b.skills)
            for owner, h in zip(b.answer, hit):
                ok[owner] &= bool(h)
            for skill, value in zip(b.skills, ok):
                right[skill].append(value)
        return {k: round(sum(v) / len(v), 2) for k, v in sorted(right.items())}


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("config")
    p.add_argument("--name", help="folder of the run under work/; default: the configuration's name")
    p.add_argument(
        "--minutes",
        type=float,
        help="train so long in all, earlier runs of the name included, whatever the number of steps; the rates decay to this end",
    )
    a = p.parse_args()
    # SIGTERM ends the process as Ctrl-C does, so that its worker processes end with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    c = json.loads(Path(a.config).read_text(encoding="utf-8"))
    run = Run(c, a.name or Path(a.config).stem)
    print(f"{sum(q.numel() for q in run.model.parameters()):,} parameters on {run.device}", flush=True)
    run.train(a.minutes)


if __name__ == "__main__":
    main()
