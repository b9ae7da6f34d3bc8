"""A beginning with heads that copy.

Small models learn little until heads form that find an earlier occurrence of what was just said and repeat what followed it
(induction heads, Olsson et al. 2022), and that takes millions of tokens. Here the first two layers begin with such heads, as
mimetic initialisation (Trockman & Kolter 2023) begins with attention that trained models have; everything is trained from there.

The residual stream at the beginning: one constant feature, the token's code, and room for the codes of the two tokens
before it. Layer 0 has a head that looks one position back and one that looks two back; they write those codes. Layer 1 compares
the current token and the one before with what stood before each earlier position, and adds the token found there.
"""

import torch

SHARP = 7.0
"""Size of the queries that look at a fixed distance."""
MATCH = 3.2
"""Size of the queries that look for a token."""
GAIN = 4.0
"""How much of a found token is added, in token codes."""


def wire(model, table) -> None:
    s, layers = model.s, model.model.layers
    d, width, pairs = s.hidden_size, s.head_dim, s.head_dim // 2
    if s.kv_heads != s.heads:
        raise ValueError("wired heads need as many key heads as query heads")
    g = torch.Generator().manual_seed(0)
    room = d // 8
    token = slice(1, d - 2 * room)
    one_back, two_back = slice(d - 2 * room, d - room), slice(d - room, d)
    size = token.stop - token.start

    own = table.own.data
    spread = own[:, token].std().item()
    own[:, one_back] = 0
    own[:, two_back] = 0
    own[:, 0] = 3 * spread
    # Behind the norm of a layer: the constant feature and a token feature's standard deviation.
    rms = (spread**2 * (size + 9) / d) ** 0.5
    constant, feature = 3 * spread / rms, spread / rms

    # One orthonormal code of a token for both places.
    code = torch.linalg.qr(torch.randn(size, room, generator=g))[0].T

    angle = s.rope_theta ** (-torch.arange(pairs).float() / pairs)
    first = layers[0].self_attn
    for head, (back, place) in enumerate(((1, one_back), (2, two_back))):
        rows = slice(head * width, (head + 1) * width)
        q, k, v, o = (m.weight.data for m in (first.q_proj, first.k_proj, first.v_proj, first.o_proj))
        for matrix in (q, k, v):
            matrix[rows] = 0
        start = head * width
        q[start : start + pairs, 0] = SHARP / constant
        k[start : start + pairs, 0] = SHARP / constant * torch.cos(back * angle)
        k[start + pairs : start + width, 0] = SHARP / constant * torch.sin(back * angle)
        v[start : start + room, token] = code
        o[place, rows] = 0
        o[place, start : start + room] = torch.eye(room) * spread / feature

    # Slow pairs carry codes over distances; the token before has the larger part of them.
    slow = list(range(pairs // 4, pairs))
    places = [x for j in reversed(slow) for x in (j, j + pairs)]
    near = min(room, len(places) * 2 // 3)
    second = layers[1].self_attn
    q, k, v, o = (m.weight.data for m in (second.q_proj, second.k_proj, second.v_proj, second.o_proj))
    share = -(-size // s.heads)
    for head in range(s.heads):
        start = head * width
        rows = slice(start, start + width)
        for matrix in (q, k, v):
            matrix[rows] = 0
        for i, place in enumerate(places):
            scale = MATCH * (1 if i < near else 0.6)
            dimension = (i + head * 3) % room
            if i < near:
                q[start + place, token] = scale * code[dimension]
                k[start + place, one_back.start + dimension] = scale
            else:
                q[start + place, one_back.start + dimension] = scale
                k[start + place, two_back.start + dimension] = scale
        mine = range(token.start + head * share, min(token.start + (head + 1) * share, token.stop))
        for i, place in enumerate(mine):
            v[start + i, place] = 1
            o[place, start + i] = GAIN * spread / feature
