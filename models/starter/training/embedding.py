"""The embedding table during training. A step reads and changes only some rows: those of its batch's tokens, and others drawn at random for
each step, from which these tokens must be distinguished."""

import torch


class Table:
    """The rows of all tokens, [tokens, hidden]. They are trained with a sparse Adam, which updates only the rows of a step."""

    def __init__(self, rows: torch.Tensor, lr: float):
        self.all = rows.clone().requires_grad_()
        self.optimizer = torch.optim.SparseAdam([self.all], lr=lr, betas=(0.9, 0.98))

    @torch.no_grad()
    def rows(self, ids: torch.Tensor) -> torch.Tensor:
        return self.all[ids]

    def step(self, ids: torch.Tensor, gradient: torch.Tensor) -> None:
        """Updates rows. ids: [n], without repeats; gradient: [n, hidden], that of these rows."""
        self.all.grad = torch.sparse_coo_tensor(
            ids[None], gradient, self.all.shape, is_coalesced=True, check_invariants=False
        )
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
