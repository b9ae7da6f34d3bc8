"""The training step for CPU cores, built on first use (g++ and ninja): `Step(model, threads)(batch)` sets the gradients."""

from pathlib import Path

import torch
from torch.utils.cpp_extension import load

HERE = Path(__file__).parent


def build():
    return load(
        "assay_native_step",
        [str(HERE / "step.cpp")],
        extra_cflags=["-O3", "-march=native", "-ffast-math", "-fopenmp-simd", "-std=c++20"],
    )


class Step:
    """Loss and gradients of a model with 32 channels a head and as many key heads as query heads."""

    def __init__(self, model, threads: int):
        s = model.s
        if s.head_dim != 32 or s.kv_heads != s.heads:
            raise ValueError("the native step wants head_dim 32 and kv_heads = heads")
        self.model, self.native = model, build()
        self.gradients = [[torch.zeros(p) for p in self._shapes()] for _ in range(threads)]
        self.cos, self.sin = model.cos.contiguous(), model.sin.contiguous()

    def _layers(self):
        for x in self.model.model.layers:
            a, m = x.self_attn, x.mlp
            yield (
                (a.q_proj.weight, a.k_proj.weight, a.v_proj.weight), (a.o_proj.weight,),
                (m.gate_proj.weight, m.up_proj.weight), (m.down_proj.weight,),
                (x.input_layernorm.weight,), (x.post_attention_layernorm.weight,),
            )  # fmt: skip

    def _groups(self):
        """The parameters in the order of `step` in step.cpp; those of a group lie one under the other."""
        body = self.model.model
        yield (body.embed_tokens.weight,)
        yield (body.norm.weight,)
        for layer in self._layers():
            yield from layer

    def _shapes(self):
        return [(sum(p.shape[0] for p in g), *g[0].shape[1:]) for g in self._groups()]

    @torch.no_grad()
    def __call__(self, b) -> float:
        """Sets the gradient of every parameter and returns the weighted mean loss of the batch's chosen tokens."""
        for thread in self.gradients:
            for g in thread:
                g.zero_()
        weights = [
            (torch.cat(g) if len(g) > 1 else g[0].detach()).to(torch.bfloat16 if g[0].ndim > 1 else torch.float32).contiguous()
            for g in self._groups()
        ]
        share = torch.from_numpy(b.weight / b.weight.sum())
        put = torch.from_numpy
        loss = self.native.step(
            weights, self.gradients, self.model.s.heads, self.model.s.norm_eps, self.cos, self.sin, put(b.tokens), put(b.positions),
            put(b.context), put(b.branch), put(b.rooted), put(b.index), put(b.target), share,
        )  # fmt: skip
        first, *others = self.gradients
        for other in others:
            torch._foreach_add_(first, other)
        for group, total in zip(self._groups(), first):
            for p, part in zip(group, total.split([p.shape[0] for p in group])):
                p.grad = part
        return loss
