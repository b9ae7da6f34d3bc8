"""The table of tokens while it is trained. A step reads and changes the rows that it needs alone: those of its batch and some others, drawn anew
each time, which its tokens must be told from."""

import torch


class Table:
    """The rows of all tokens, [tokens, hidden]; they learn with a sparse Adam, row by row as rows are met."""

    def __init__(self, rows: torch.Tensor, lr: float):
        self.all = rows.clone().requires_grad_()
        self.optimizer = torch.optim.SparseAdam([self.all], lr=lr, betas=(0.9, 0.98))

    @torch.no_grad()
    def rows(self, ids: torch.Tensor) -> torch.Tensor:
        return self.all[ids]

    def step(self, ids: torch.Tensor, gradient: torch.Tensor) -> None:
        """ids: [n] without repeats; gradient: [n, hidden] of their rows."""
        self.all.grad = torch.sparse_coo_tensor(
            ids[None], gradient, self.all.shape, is_coalesced=True, check_invariants=False
        )
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
