"""The table of tokens while it is trained: what word vectors say of a word, brought to the model's width, and what training adds.

    row of a token = meaning of its word [100 + forms] @ map [100 + forms, hidden] + own [hidden]

The map is learned on words that training meets often and carries over to those that it hardly met. A published model has only the sum of both. A step reads
and changes the rows that it needs alone: those of its batch and some others, drawn anew each time, which its tokens must be told from.
"""

import re

import numpy as np
import torch
from tokenizers import Tokenizer

from dictionary import common_words
from sources import glove

SIZE = 3.0
"""Length of a word's vector."""
COMMONEST = 2
"""So many directions that all words share are taken away (Mu and Viswanath 2018, "All-but-the-top")."""
FORMS = (r"Ġ[a-z]+", r"[a-z]+", r"[A-Z][a-z]+", r".*[0-9].*")
"""How a token is written; each is a feature of its own, and so is being a token."""


def word_vectors() -> dict[str, np.ndarray]:
    words, vectors = glove()
    centred = vectors - vectors[:30_000].mean(0)
    directions = np.linalg.svd(centred[:30_000], full_matrices=False)[2][:COMMONEST]
    centred = centred - centred @ directions.T @ directions
    centred *= SIZE / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-6)
    known = set(common_words(None))
    return {w: v for w, v in zip(words, centred) if w in known}


def meaning_table(tokenizer: Tokenizer) -> torch.Tensor:
    """[tokens, 100 + forms]: the vector of the word that a token is, nothing for other tokens, and its form."""
    known = word_vectors()
    names = sorted(tokenizer.get_vocab().items(), key=lambda x: x[1])
    table = np.zeros((len(names), 100 + len(FORMS) + 1), np.float32)
    table[:, 100] = 1
    for name, i in names:
        word = re.fullmatch("Ġ?([A-Za-z]{2,})", name)
        if word and word[1].lower() in known:
            table[i, :100] = known[word[1].lower()]
        for j, form in enumerate(FORMS):
            table[i, 101 + j] = re.fullmatch(form, name) is not None
    return torch.from_numpy(table)


class Table:
    """The rows of all tokens and how they learn. `own` learns with a sparse Adam, row by row as rows are met."""

    def __init__(self, meaning: torch.Tensor, hidden: int, lr: float, scale: float, device: str = "cpu"):
        g = torch.Generator().manual_seed(0)
        self.meaning = meaning.to(device)
        self.map = torch.zeros(meaning.shape[1], hidden, device=device)
        self.own = (torch.randn(len(meaning), hidden, generator=g) * scale).to(device)
        self.own.requires_grad_()
        self.optimizers = [
            torch.optim.SparseAdam([self.own], lr=lr, betas=(0.9, 0.98)),
            torch.optim.AdamW([self.map], lr=lr / 3, betas=(0.9, 0.98), weight_decay=0.0),
        ]

    @torch.no_grad()
    def rows(self, ids: torch.Tensor) -> torch.Tensor:
        return self.own[ids] + self.meaning[ids] @ self.map

    def all(self) -> torch.Tensor:
        return self.rows(torch.arange(len(self.own)))

    def step(self, ids: torch.Tensor, gradient: torch.Tensor) -> None:
        """ids: [n] without repeats; gradient: [n, hidden] of their rows."""
        self.own.grad = torch.sparse_coo_tensor(
            ids[None], gradient, self.own.shape, is_coalesced=True, check_invariants=False
        )
        self.map.grad = self.meaning[ids].T @ gradient
        for o in self.optimizers:
            o.step()
            o.zero_grad(set_to_none=True)

    def state(self) -> dict:
        return {"own": self.own.detach(), "map": self.map, "optimizers": [o.state_dict() for o in self.optimizers]}

    def load(self, state: dict) -> None:
        with torch.no_grad():
            self.own.copy_(state["own"])
            self.map.copy_(state["map"])
        for o, s in zip(self.optimizers, state.get("optimizers", [])):
            o.load_state_dict(s)
