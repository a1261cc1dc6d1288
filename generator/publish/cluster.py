"""The cluster that a run stands for: one on which communication takes the same share of computation.

With F the FLOP/s and β the bytes/s of a rank, b bytes an element, a group of n ranks, and 6 FLOP for a
parameter and token (forward and backward of its products; attention's own products are left out):

- Data parallelism sends 2(n−1)/n·b bytes a parameter (a ring all-reduce) and computes 6·T FLOP for it,
  T tokens a rank: ratio = (2b/6)·(n−1)/n·(F/β)/T. Sharded parameters that are gathered twice make it 3b/6.
- Tensor parallelism sends 4·2(n−1)/n·h elements a token and layer and computes 6·12·h²/n for it, h the
  width: ratio = (8b/72)·(n−1)·(F/β)/h.
- A pipeline's stages send 2(n−1)/n·h elements a token in the mean (the last sends nothing on, the first
  nothing back) and compute 6·12·h²·l, l layers a stage: ratio = (2b/72)·(n−1)/n·(F/β)/(h·l).
"""

from __future__ import annotations

from generator.publish import show
from generator.runs.manifest import Manifest

FLOP_PER_S, BYTES_PER_S, ELEMENT_BYTES = 400e12, 50e9, 2
ASSUMED = (
    f"bf16, 400{show.THIN}TFLOP/s and 50{show.THIN}GB/s a rank, as many ranks as here, "
    "6 FLOP a parameter and token"
)


def stands_for(manifest: Manifest) -> str:
    """What of a cluster gives the run's ratio; empty for a run that none of the forms above describes."""
    mesh, options = manifest.mesh, manifest.options
    sizes = {"dp": mesh.dp, "shard": mesh.shard, "tp": mesh.tp, "pp": mesh.pp, "cp": mesh.cp, "ep": mesh.ep}
    used = [(name, size) for name, size in sizes.items() if size > 1]
    special = options.recompute or options.reduce_each or manifest.link.ranks_per_node > 1
    if not manifest.ratio or manifest.ratio.value <= 0 or len(used) != 1 or special:
        return ""
    (name, ranks), ratio = used[0], manifest.ratio.value
    if name == "dp":
        return f"{_rounded(tokens_a_rank(ratio, ranks, payloads=2))} tokens a rank"
    if name == "shard":
        payloads = 3 if options.reshard_after_forward else 2
        return f"{_rounded(tokens_a_rank(ratio, ranks, payloads))} tokens a rank"
    if name == "tp":
        return f"a model of width {_rounded(tensor_width(ratio, ranks))}"
    if name == "pp":
        return f"stages with {_rounded(stage_size(ratio, ranks))} for width × layers"
    return ""


def data_parallel_ratio(tokens: int) -> float:
    """The ratio of data parallelism over many ranks, each with so many tokens a step."""
    return 2 * ELEMENT_BYTES / 6 * _flop_per_byte() / tokens


def tokens_a_rank(ratio: float, ranks: int, payloads: int) -> float:
    """Tokens of one rank and step in data parallelism that passes the parameters `payloads` times."""
    return payloads * ELEMENT_BYTES / 6 * (ranks - 1) / ranks * _flop_per_byte() / ratio


def tensor_width(ratio: float, ranks: int) -> float:
    """Width of a model cut over `ranks`."""
    return 8 * ELEMENT_BYTES / 72 * (ranks - 1) * _flop_per_byte() / ratio


def stage_size(ratio: float, ranks: int) -> float:
    """Width times layers of each of a pipeline's stages."""
    return 2 * ELEMENT_BYTES / 72 * (ranks - 1) / ranks * _flop_per_byte() / ratio


def _flop_per_byte() -> float:
    return FLOP_PER_S / BYTES_PER_S


def _rounded(value: float) -> str:
    """To two significant digits."""
    return show.integer(int(float(f"{value:.2g}")))
