"""Whether a run needs to be recorded again."""

from __future__ import annotations

import hashlib
from pathlib import Path

from generator.errors import UserError
from generator.recorder.spec import RunSpec
from generator.runs.manifest import FILE_NAME, Manifest, read_manifest

#: What a manifest says before anything is run, and must say still.
_SETTLED = (
    "title",
    "kind",
    "scheme",
    "description",
    "source",
    "partner",
    "mesh",
    "schedule",
    "options",
)


def is_recorded(spec: RunSpec, head: Manifest, folder: Path) -> bool:
    """Whether a folder holds a run whole, as the recorder would make it now.

    `head` is what a recording of today would say at its begin. Settings, link, model, batch and PyTorch
    must be the same and the files unharmed. What the scheme's code does is not compared.
    """
    try:
        found = read_manifest(folder / FILE_NAME)
    except UserError:
        return False
    settled = all(getattr(found, name) == getattr(head, name) for name in _SETTLED)
    return (
        settled
        and found.machine.torch == head.machine.torch
        and found.machine.pinned_cores == spec.pinned_cores
        and _link_is_meant(spec, found)
        and _work_is_meant(spec, found)
        and all(_is_whole(folder / entry.file, entry.sha256) for entry in found.ranks)
    )


def _link_is_meant(spec: RunSpec, found: Manifest) -> bool:
    link = found.link
    if spec.world_size < 2 or not spec.rate_mbit:
        return link.method in ("none", "loopback")
    calibration = spec.calibration if spec.kind != "calibration" else ""
    meant = (spec.rate_mbit, calibration, spec.ranks_per_node)
    return (link.rate_mbit, link.calibration, link.ranks_per_node) == meant


def _work_is_meant(spec: RunSpec, found: Manifest) -> bool:
    if spec.kind == "calibration":
        return bool(found.table)
    if len(found.ranks) != spec.world_size or len(found.steps) != spec.steps:
        return False
    if spec.kind != "training":
        return True
    from generator.recorder.model import Shape

    shape, model, batch = Shape(**spec.shape), found.model, found.batch
    if model is None or batch is None:
        return False
    return shape == Shape(
        model.d_model, model.layers, model.heads, model.vocabulary, batch.tokens, batch.sequences
    )


def _is_whole(path: Path, sha256: str) -> bool:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == sha256
    except OSError:
        return False
