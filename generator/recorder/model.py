"""The model of every run: a small decoder-only transformer, whole or as a slice of its layers.

Pre-norm blocks, learned positions, causal attention, GELU, no dropout, no biases in the linears, an
output table of its own. Query, key and value are separate linears, so that tensor parallelism can
split each by heads without reordering weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as functional
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class Shape:
    """Dimensions of the whole model and of one global batch."""

    d_model: int = 256
    layers: int = 8
    heads: int = 8
    vocabulary: int = 1024
    #: Tokens of a sequence.
    tokens: int = 128
    #: Sequences of a step over all ranks.
    sequences: int = 8


class Embedding(nn.Module):
    """Tokens [batch, tokens] to vectors [batch, tokens, d_model], plus a learned position."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.token = nn.Embedding(shape.vocabulary, shape.d_model)
        self.position = nn.Embedding(shape.tokens, shape.d_model)
        #: Where the tokens stand in the sequence; None for the first ones, whose rows need no look-up.
        self.positions: Tensor | None = None

    def forward(self, tokens: Tensor) -> Tensor:
        if self.positions is None:
            first: Tensor = self.position.weight[: tokens.shape[1]]
            vectors: Tensor = self.token(tokens)
            return vectors + first
        looked_up: Tensor = self.token(tokens) + self.position(self.positions)
        return looked_up


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Each token's mix of the values of the tokens up to it; all [batch, heads, tokens, head size]."""
    mixed: Tensor = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return mixed


class Attention(nn.Module):
    """Causal self-attention over the heads whose weights are here."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.head_size = shape.d_model // shape.heads
        self.wq = nn.Linear(shape.d_model, shape.d_model, bias=False)
        self.wk = nn.Linear(shape.d_model, shape.d_model, bias=False)
        self.wv = nn.Linear(shape.d_model, shape.d_model, bias=False)
        self.wo = nn.Linear(shape.d_model, shape.d_model, bias=False)
        #: How queries meet keys and values; other where a rank has only a part of the sequence.
        self.mix: Callable[[Tensor, Tensor, Tensor], Tensor] = causal_attention

    def forward(self, x: Tensor) -> Tensor:
        # The number of heads is not stated: under tensor parallelism a rank has only some of them.
        q, k, v = (self._by_head(w(x)) for w in (self.wq, self.wk, self.wv))
        out: Tensor = self.wo(self.mix(q, k, v).transpose(1, 2).flatten(2))
        return out

    def _by_head(self, x: Tensor) -> Tensor:
        """[batch, tokens, width] to [batch, heads, tokens, head size]."""
        return x.unflatten(-1, (-1, self.head_size)).transpose(1, 2)


class MLP(nn.Module):
    """Four times as wide inside."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.w1 = nn.Linear(shape.d_model, 4 * shape.d_model, bias=False)
        self.w2 = nn.Linear(4 * shape.d_model, shape.d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.w2(functional.gelu(self.w1(x)))
        return out


class Block(nn.Module):
    """One layer: attention, then MLP, each normalised before and added to the residual stream."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(shape.d_model)
        self.attention = Attention(shape)
        self.norm2 = nn.LayerNorm(shape.d_model)
        self.mlp = MLP(shape)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        out: Tensor = x + self.mlp(self.norm2(x))
        return out


class Head(nn.Module):
    """The last norm and the logits [batch, tokens, vocabulary]."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(shape.d_model)
        self.table = nn.Linear(shape.d_model, shape.vocabulary, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.table(self.norm(x))
        return logits


class GPT(nn.Module):
    """The layers `first` to `last` (exclusive); the embedding goes with layer 0, the head with the last.

    With `head=False` the last layer is here and the head is elsewhere.
    """

    def __init__(self, shape: Shape, first: int = 0, last: int | None = None, *, head: bool = True) -> None:
        super().__init__()
        last = shape.layers if last is None else last
        self.embedding = Embedding(shape) if first == 0 else None
        # Keyed by the layer's number in the whole model, so that a slice has the names of the whole.
        self.blocks = nn.ModuleDict({str(i): Block(shape) for i in range(first, last)})
        self.head = Head(shape) if head and last == shape.layers else None

    def forward(self, x: Tensor) -> Tensor:
        if self.embedding is not None:
            x = self.embedding(x)
        for block in self.blocks.values():
            x = block(x)
        if self.head is not None:
            x = self.head(x)
        return x


def build_model(
    shape: Shape, seed: int, first: int = 0, last: int | None = None, *, head: bool = True
) -> GPT:
    """The seeded model, or the slice of its layers [first, last).

    The *whole* model is always initialised, and a slice takes its part: slices that were seeded by
    themselves would start from other weights, and no loss would agree with the single process.
    """
    torch.manual_seed(seed)
    whole = GPT(shape)
    if first == 0 and last in (None, shape.layers) and head:
        return whole
    part = GPT(shape, first, last, head=head)
    state: dict[str, Any] = whole.state_dict()
    part.load_state_dict({name: state[name] for name in part.state_dict()})
    return part


def count_parameters(shape: Shape) -> int:
    """Parameters of the whole model, counted without making them."""
    with torch.device("meta"):
        return sum(p.numel() for p in GPT(shape).parameters())


def loss_of(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy over all tokens; logits [..., vocabulary], targets [...]."""
    return functional.cross_entropy(logits.flatten(0, -2), targets.flatten())
