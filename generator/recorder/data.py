"""What the model reads: windows of one short text, byte by byte, the same for every scheme.

A batch depends only on the seed and the step, never on the rank: each scheme cuts its share from
the one global batch, which is what makes losses comparable.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

TEXT = Path(__file__).with_name("corpus.txt")


@dataclass(frozen=True, slots=True)
class Batch:
    """Token ids of one step, int64 [sequences, tokens], and for each the token that follows it."""

    inputs: Tensor
    targets: Tensor

    def share(self, index: int, shares: int) -> Batch:
        """The `index`-th of `shares` equal parts, cut by sequences."""
        return Batch(self.inputs.chunk(shares)[index], self.targets.chunk(shares)[index])


@cache
def text_bytes() -> bytes:
    """The text that all runs train on."""
    return TEXT.read_bytes()


def text_sha256() -> str:
    """SHA-256 of the text, hexadecimal: the manifest names the data by it."""
    return hashlib.sha256(text_bytes()).hexdigest()


def make_batch(step: int, sequences: int, tokens: int, seed: int) -> Batch:
    """The global batch of a step: windows of tokens + 1 bytes at positions drawn from seed and step."""
    text = torch.frombuffer(bytearray(text_bytes()), dtype=torch.uint8).long()
    generator = torch.Generator().manual_seed(seed * 1_000_003 + step)
    starts = torch.randint(0, len(text) - tokens, (sequences, 1), generator=generator)
    windows = text[starts + torch.arange(tokens + 1)]
    return Batch(windows[:, :-1].contiguous(), windows[:, 1:].contiguous())
