"""Puts a trained network onto another vocabulary: `python graft.py OLD OLD_TOKENIZER NEW`, names and folder under work/.

Layers stay. A token that both vocabularies have keeps its row; how the map brings word vectors to the old rows is solved for (ridge regression), and gives the
rows of new words; of what the old pieces of a new token had beside their meaning it gets a half, and some noise to be told by.
"""

import sys

import torch
from tokenizers import Tokenizer

import paths
from embedding import Table, meaning_table
from model import EMBED, EMBEDDING

RIDGE = 30.0
NOISE = 0.5
BEGIN = 2000
"""The first lessons (`stages`) are left out."""


def main(old_name: str, old_tokenizer: str, name: str):
    state = torch.load(paths.WORK / old_name / "last.pt", map_location="cpu", weights_only=True)
    old = Tokenizer.from_file(str(paths.WORK / old_tokenizer / "tokenizer.json"))
    new = Tokenizer.from_file(str(paths.TOKENIZER / "tokenizer.json"))
    rows = state["model"][EMBED]
    meaning = meaning_table(new)
    table = Table(meaning, rows.shape[1], 1.0, EMBEDDING)
    before, now = old.get_vocab(), new.get_vocab()
    shared = [(before[t], i) for t, i in now.items() if t in before]
    a = torch.tensor([x for x, _ in shared])
    b = torch.tensor([x for _, x in shared])
    g = meaning[b]
    table.map = torch.linalg.solve(g.T @ g + RIDGE * torch.eye(g.shape[1]), g.T @ rows[a])
    rest = rows[a] - g @ table.map
    words = g[:, :100].abs().sum(1) > 0
    explained = 1 - rest[words].var() / rows[a][words].var()
    print(
        f"{len(shared)} tokens of {len(now)} stay; vectors explain {100 * explained:.0f}% of {int(words.sum())} words' rows"
    )
    by_old = dict(zip(a.tolist(), rest))
    own = torch.randn(table.own.shape, generator=torch.Generator().manual_seed(1)) * rest.std(0) * NOISE
    for token, i in now.items():
        if token in before:
            own[i] = by_old[before[token]]
        elif pieces := old.encode(new.decode([i], skip_special_tokens=False), add_special_tokens=False).ids:
            own[i] += 0.5 * torch.stack([by_old.get(p, torch.zeros_like(own[0])) for p in pieces]).mean(0)
    table.own.data = own
    folder = paths.WORK / name
    folder.mkdir(exist_ok=True)
    whole = {**state["model"], EMBED: table.all()}
    shape = {**state["shape"], "vocab_size": len(now)}
    made = {
        "model": whole,
        "table": {"own": own, "map": table.map},
        "optimizers": [],
        "shape": shape,
        "begun": BEGIN,
        "step": BEGIN,
        "tokens": 0,
        "seconds": 0.0,
    }
    torch.save(made, folder / "last.pt")


if __name__ == "__main__":
    main(*sys.argv[1:])
