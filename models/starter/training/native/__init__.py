"""The training step for CPU cores, built on first use (g++ and ninja): `Step(model, threads)(batch)` sets the gradients."""

from functools import cache
from pathlib import Path

import torch
from torch.utils.cpp_extension import load

from quantise import rounded

HERE = Path(__file__).parent
FLAGS = ["-O3", "-march=native", "-mprefer-vector-width=512", "-ffast-math", "-std=c++20", "-fvisibility=hidden"]


@cache
def build(head_dim: int):
    return load(
        f"assay_native_step_{head_dim}",
        [str(HERE / "step.cpp")],
        extra_cflags=[*FLAGS, f"-DWIDTH={head_dim}"],
    )


class Step:
    """Computes loss and gradients of a model. All steps write the gradients to the same memory."""

    def __init__(self, model, threads: int):
        s = model.s
        if s.head_dim not in (32, 64):
            raise ValueError("the native step wants head_dim 32 or 64")
        if s.heads * s.head_dim != s.hidden_size or s.heads % s.kv_heads:
            raise ValueError("the native step wants heads * head_dim = hidden_size, and kv_heads to divide heads")
        if any(p.dtype != torch.float32 or not p.is_contiguous() for p in model.parameters()):
            raise ValueError("the native step wants parameters in fp32, contiguous")
        if any(size % 32 for size in (s.hidden_size, s.mlp_size, s.vocab_size)):
            raise ValueError("the native step wants hidden_size, mlp_size and vocab_size in multiples of 32")
        self.model = model
        cos, sin = model.cos.contiguous(), model.sin.contiguous()
        self.native = build(s.head_dim).Step(s.heads, s.kv_heads, s.norm_eps, cos, sin, threads)
        self.gradients = [torch.zeros(sum(p.shape[0] for p in g), *g[0].shape[1:]) for g in self._groups()]

    def _groups(self):
        """Returns the parameters in the order of `run` in step.cpp; the matrices of a group are stacked there."""
        body = self.model.model
        yield (body.embed_tokens.weight,)
        yield (body.norm.weight,)
        for x in body.layers:
            a, m = x.self_attn, x.mlp
            yield (x.input_layernorm.weight,)
            yield (a.q_proj.weight, a.k_proj.weight, a.v_proj.weight)
            yield (a.o_proj.weight,)
            yield (x.post_attention_layernorm.weight,)
            yield (m.gate_proj.weight, m.up_proj.weight)
            yield (m.down_proj.weight,)

    @torch.no_grad()
    def __call__(self, b, round_weights: bool = False, part: float = 1.0, seed: int = 0) -> float:
        """Sets the gradient of every parameter, and returns the weighted mean loss of the batch's chosen tokens, with weights as they are
        or rounded as they are served (`quantise.py`). With a `part` below 1, only this share of the branches is used for the gradient.
        They are drawn with the seed, with probabilities by how much can be learned from them, so that the gradient is right on average
        (drawn.h)."""
        if b.tokens.shape[1] % 32:
            raise ValueError("the native step wants rows of a multiple of 32 tokens")
        groups = [[p.detach() for p in g] for g in self._groups()]
        if round_weights:
            # The rows of the embedding table are used as they are stored here.
            groups[0] = [rounded(groups[0][0])]
        share = torch.from_numpy(b.weight / b.weight.sum())
        arrays = (b.tokens, b.positions, b.context, b.branch, b.rooted, b.index, b.target)
        loss = self.native.run(groups, self.gradients, *map(torch.from_numpy, arrays), share, round_weights, part, seed)
        for group, whole in zip(self._groups(), self.gradients):
            for p, part in zip(group, whole.split([p.shape[0] for p in group])):
                p.grad = part
        return loss
