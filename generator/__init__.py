"""Shardbook: a book about distributed training in which every figure is a recorded run."""

__version__ = "0.1.0"
