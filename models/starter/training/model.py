"""The network: Llama (RMSNorm, rotary positions, grouped-query attention, SwiGLU, tied embeddings), small enough to read.

Parameter names are those of `LlamaForCausalLM` in transformers, so a checkpoint is exported without renaming.
"""

from dataclasses import asdict, dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

EMBED = "model.embed_tokens.weight"
"""Name of the embedding table."""


@dataclass(frozen=True)
class Shape:
    vocab_size: int
    hidden_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    mlp_size: int
    max_positions: int = 8192
    rope_theta: float = 10000.0
    norm_eps: float = 1e-5

    def to_config(self, end: list[int], pad: int) -> dict:
        """Returns `config.json` in the format of transformers and the exporters."""
        return {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "intermediate_size": self.mlp_size,
            "max_position_embeddings": self.max_positions,
            "rope_theta": self.rope_theta,
            "rms_norm_eps": self.norm_eps,
            "hidden_act": "silu",
            "attention_bias": False,
            "attention_dropout": 0.0,
            "mlp_bias": False,
            "initializer_range": 0.02,
            "tie_word_embeddings": True,
            "use_cache": True,
            "bos_token_id": None,
            "eos_token_id": end[0],
            "pad_token_id": pad,
            "torch_dtype": "float32",
        }

    def as_dict(self) -> dict:
        return asdict(self)


class RMSNorm(nn.Module):
    def __init__(self, size: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight.to(x.dtype), self.eps)


def rotate(x, cos, sin):
    """Rotary position embedding, half-split layout (Su et al. 2021; the layout of Llama in transformers)."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


class Attention(nn.Module):
    def __init__(self, s: Shape):
        super().__init__()
        self.s = s
        self.q_proj = nn.Linear(s.hidden_size, s.heads * s.head_dim, bias=False)
        self.k_proj = nn.Linear(s.hidden_size, s.kv_heads * s.head_dim, bias=False)
        self.v_proj = nn.Linear(s.hidden_size, s.kv_heads * s.head_dim, bias=False)
        self.o_proj = nn.Linear(s.heads * s.head_dim, s.hidden_size, bias=False)

    def forward(self, x, cos, sin, mask):
        s, (b, n, _) = self.s, x.shape
        q = self.q_proj(x).view(b, n, s.heads, s.head_dim).transpose(1, 2)
        k = self.k_proj(x).view(b, n, s.kv_heads, s.head_dim).transpose(1, 2)
        v = self.v_proj(x).view(b, n, s.kv_heads, s.head_dim).transpose(1, 2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        group = s.heads // s.kv_heads
        if group > 1:
            k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.o_proj(y.transpose(1, 2).reshape(b, n, s.heads * s.head_dim))


class Mlp(nn.Module):
    def __init__(self, s: Shape):
        super().__init__()
        self.gate_proj = nn.Linear(s.hidden_size, s.mlp_size, bias=False)
        self.up_proj = nn.Linear(s.hidden_size, s.mlp_size, bias=False)
        self.down_proj = nn.Linear(s.mlp_size, s.hidden_size, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, s: Shape):
        super().__init__()
        self.input_layernorm = RMSNorm(s.hidden_size, s.norm_eps)
        self.self_attn = Attention(s)
        self.post_attention_layernorm = RMSNorm(s.hidden_size, s.norm_eps)
        self.mlp = Mlp(s)

    def forward(self, x, cos, sin, mask):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    def __init__(self, s: Shape):
        super().__init__()
        self.embed_tokens = nn.Embedding(s.vocab_size, s.hidden_size)
        self.layers = nn.ModuleList(Layer(s) for _ in range(s.layers))
        self.norm = RMSNorm(s.hidden_size, s.norm_eps)


class Model(nn.Module):
    def __init__(self, s: Shape):
        super().__init__()
        self.s = s
        self.model = Body(s)
        frequency = s.rope_theta ** (-torch.arange(0, s.head_dim, 2).float() / s.head_dim)
        angle = torch.outer(torch.arange(s.max_positions).float(), frequency)
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)

    def hidden(self, tokens, positions, mask):
        """tokens, positions: [batch, n]; mask: [batch, 1, n, n], true where a position may be seen -> [batch, n, hidden]."""
        x = self.model.embed_tokens(tokens)
        dtype = torch.get_autocast_dtype(x.device.type) if torch.is_autocast_enabled(x.device.type) else x.dtype
        cos = self.cos[positions].unsqueeze(1).to(dtype)
        sin = self.sin[positions].unsqueeze(1).to(dtype)
        for layer in self.model.layers:
            x = layer(x, cos, sin, mask)
        return self.model.norm(x)

    def logits(self, hidden):
        return F.linear(hidden, self.model.embed_tokens.weight)


def weighted_loss(logits: torch.Tensor, target: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Weighted mean of the cross-entropies of chosen tokens. logits: [chosen, vocab]; target, weight: [chosen] -> []."""
    return (F.cross_entropy(logits.float(), target, reduction="none") * weight).sum() / weight.sum()
