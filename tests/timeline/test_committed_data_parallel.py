"""The committed recordings of data parallelism and its sharding, held against closed forms."""

from __future__ import annotations

from collections import Counter

import pytest

from generator.timeline.collectives import match_step
from generator.timeline.formulas import FORMULAS
from generator.timeline.metrics import METRICS
from generator.timeline.reconstruct import representative_step
from generator.timeline.spans import Activity, Timeline
from tests.committed import batch, model, run, timeline

BUCKETED = ("ddp-tiny-buckets", "ddp", "ddp-one-bucket", "ddp-accumulate", "ddp-accumulate-sync")
SHARDED = ("zero1", "zero1-library", "zero2", "fsdp", "fsdp-no-prefetch", "fsdp-nodes", "hsdp")


def recorded(run_id: str) -> Timeline:
    return timeline(run_id, "recorded")


def ops(run_id: str) -> Counter[str]:
    """Calls that rank 0 takes part in."""
    return Counter(c.op for c in recorded(run_id).calls if 0 in c.ranks)


def wire_elements(run_id: str, op: str | None = None) -> float:
    """Elements that rank 0 sends."""
    return float(METRICS["wire_bytes"](recorded(run_id), rank=0, op=op)) / 4


def closed(name: str, *values: int) -> float:
    return float(FORMULAS[name].function(*values))


# ---- buckets


def buckets(run_id: str) -> int:
    """Buckets fill from the last parameter on and close when they reach the cap."""
    m, d = model(run_id), model(run_id).d_model
    block = [d, d, d * d, d * d, d * d, d * d, d, d, 4 * d * d, 4 * d * d]
    elements = [batch(run_id).tokens * d, m.vocabulary * d, *(block * m.layers), d, d, m.vocabulary * d]
    cap = int(run(run_id).manifest.options.bucket_mib * 2**20)
    closed, filled = 0, 0
    for count in reversed(elements):
        filled += 4 * count
        if filled >= cap:
            closed, filled = closed + 1, 0
    return closed + (filled > 0)


@pytest.mark.parametrize("run_id", BUCKETED)
def test_all_reduces_are_buckets_and_times_m_without_no_sync(run_id: str) -> None:
    options = run(run_id).manifest.options
    times = options.accumulation if options.reduce_each else 1
    assert ops(run_id) == {"all_reduce": times * buckets(run_id)}
    once = closed("ddp_wire_elements", model(run_id).parameters, run(run_id).manifest.world_size)
    assert wire_elements(run_id) == pytest.approx(times * once)


def test_there_is_one_bucket_one_of_many_and_four_times_as_many() -> None:
    assert buckets("ddp-one-bucket") == 1
    assert buckets("ddp") < buckets("ddp-tiny-buckets")
    assert ops("ddp-accumulate-sync")["all_reduce"] == 4 * ops("ddp-accumulate")["all_reduce"]


@pytest.mark.parametrize("run_id", [b for b in BUCKETED if b != "ddp-accumulate-sync"])
def test_the_first_step_has_one_bucket(run_id: str) -> None:
    assert len(match_step(run(run_id), 0)) == 1


def test_only_the_first_of_all_backwards_has_one_bucket() -> None:
    assert len(match_step(run("ddp-accumulate-sync"), 0)) == 1 + 3 * buckets("ddp-accumulate-sync")


def test_one_bucket_hides_nothing() -> None:
    overlap = {b: METRICS["overlap"](timeline(b)) for b in ("ddp", "ddp-one-bucket")}
    assert overlap["ddp-one-bucket"] < 0.02 < overlap["ddp"]


# ---- counts and bytes of sharding


@pytest.mark.parametrize(("run_id", "expected"), [
    ("zero1", {"reduce_scatter": 1, "all_gather": 1}),
    ("zero2", {"all_gather": 9, "reduce_scatter": 9}),
    ("fsdp", {"all_gather": 17, "reduce_scatter": 9}),
    ("fsdp-no-prefetch", {"all_gather": 17, "reduce_scatter": 9}),
    ("fsdp-nodes", {"all_gather": 17, "reduce_scatter": 9}),
    ("hsdp", {"all_gather": 17, "reduce_scatter": 9, "all_reduce": 9}),
])  # fmt: skip
def test_calls_of_a_step(run_id: str, expected: dict[str, int]) -> None:
    """With L units below the root: 2L + 1 all-gathers (L + 1 without resharding), L + 1 reduce-scatters."""
    assert ops(run_id) == expected


def test_the_library_broadcasts_once_a_rank_and_reduces_by_bucket() -> None:
    assert ops("zero1-library") == {"all_reduce": buckets("zero1-library"), "broadcast": 4}


def root(run_id: str) -> int:
    """Parameters of embedding and head."""
    m = model(run_id)
    return m.parameters - m.layers * (12 * m.d_model**2 + 4 * m.d_model)


@pytest.mark.parametrize(("run_id", "name"), [
    ("zero1", "zero1_wire_elements"),
    ("zero1-library", "zero1_library_wire_elements"),
    ("zero2", "zero1_wire_elements"),
])  # fmt: skip
def test_wire_elements_of_zero_1_and_2(run_id: str, name: str) -> None:
    """2fΨ for ZeRO-1 and 2; the library all-reduces, 2fΨ, and broadcasts, fΨ."""
    assert wire_elements(run_id) == pytest.approx(closed(name, model(run_id).parameters, 4))


@pytest.mark.parametrize("run_id", ["fsdp", "fsdp-no-prefetch", "fsdp-nodes"])
def test_wire_elements_of_fsdp(run_id: str) -> None:
    """f(2Ψ_blocks + Ψ_root + Ψ): a little less than 3fΨ, as the root is gathered once."""
    expected = closed("fsdp_wire_elements", model(run_id).parameters, root(run_id), 4)
    assert wire_elements(run_id) == pytest.approx(expected)


def test_hybrid_sharding_sends_a_half_in_the_node_and_a_shard_across() -> None:
    """Inside, shards over 2: f(3Ψ − Ψ_root), f = 1/2. Across, the all-reduce of half: 2·(1/2)·Ψ/2."""
    psi = model("hsdp").parameters
    inside = wire_elements("hsdp", "all_gather") + wire_elements("hsdp", "reduce_scatter")
    assert inside == pytest.approx(closed("fsdp_wire_elements", psi, root("hsdp"), 2))
    across = wire_elements("hsdp", "all_reduce")
    assert across == pytest.approx(closed("hsdp_wire_elements_across", psi, 2, 2))
    groups = {(c.op, c.ranks) for c in recorded("hsdp").calls}
    assert {ranks for op, ranks in groups if op == "all_reduce"} == {(0, 2), (1, 3)}
    assert {ranks for op, ranks in groups if op != "all_reduce"} == {(0, 1), (2, 3)}
    assert {run(r).manifest.link.ranks_per_node for r in ("hsdp", "fsdp-nodes")} == {2}


def test_between_nodes_hybrid_sharding_sends_less_than_full_sharding() -> None:
    """Bytes that leave a node: of a ring over all ranks, what one rank sends; of two rings across, two.

    Full sharding: f(3Ψ − Ψ_root), f = 3/4. Hybrid: two ranks, each half of Ψ.
    """
    full = wire_elements("fsdp-nodes")
    hybrid = 2 * wire_elements("hsdp", "all_reduce")
    psi = model("hsdp").parameters
    assert full / hybrid == pytest.approx(3 / 4 * (3 - root("hsdp") / psi))
    assert METRICS["transfer"](timeline("hsdp")) < 0.75 * METRICS["transfer"](timeline("fsdp-nodes"))


# ---- memory


def at_optimizer(run_id: str, rank: int) -> dict[str, float]:
    """Bytes held as the optimizer begins, in units of the model's parameters."""
    found = recorded(run_id).ranks[rank]
    spans = found.computation
    begin = int(spans.start_ns[spans.activity == Activity.OPTIMIZER][0])
    row = found.memory.bytes[found.memory.time_ns <= begin][-1]
    names = ("parameters", "gradients", "optimizer")
    return dict(zip(names, row[:3] / model(run_id).parameters, strict=True))


@pytest.mark.parametrize("rank", range(4))
@pytest.mark.parametrize(("run_id", "expected"), [
    ("zero1", (4, 4, 8 / 4)),
    ("zero1-library", (4, 4, 8 / 4)),
    ("zero2", (4 / 4, 4 / 4, 8 / 4)),
    ("fsdp", (4 / 4, 4 / 4, 8 / 4)),
    ("fsdp-no-prefetch", (4 / 4, 4 / 4, 8 / 4)),
    ("hsdp", (4 / 2, 4 / 2, 8 / 2)),
])  # fmt: skip
def test_state_memory_is_that_of_the_zero_formulas(
    run_id: str, expected: tuple[float, ...], rank: int
) -> None:
    """Bytes a parameter as the optimizer begins. FSDP has resharded by then, also for ZeRO-2."""
    assert tuple(at_optimizer(run_id, rank).values()) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(("run_id", "ranks", "stage"), [
    ("ddp", 4, 0), ("zero1", 4, 1), ("zero1-library", 4, 1), ("fsdp", 4, 3), ("hsdp", 2, 3)])  # fmt: skip
def test_state_memory_adds_up_to_that_of_its_stage(run_id: str, ranks: int, stage: int) -> None:
    psi = model(run_id).parameters
    expected = closed("zero_state_bytes", psi, ranks, stage)
    assert sum(at_optimizer(run_id, 0).values()) * psi == pytest.approx(expected, rel=0.02)


def test_zero_2_holds_its_formula_and_a_shard_of_the_parameters() -> None:
    """Gathered parameters are held in forward and backward, reduced gradients and state at the optimizer."""
    psi = model("zero2").parameters
    held = at_optimizer("zero2", 0)
    total = (peak("zero2", "parameters") + held["gradients"] + held["optimizer"]) * psi
    expected = closed("zero_state_bytes", psi, 4, 2) + 4 * psi / 4
    assert total == pytest.approx(expected, rel=0.02)


def peak(run_id: str, category: str) -> float:
    held = METRICS["peak_memory"](recorded(run_id), rank=0, category=category)
    return float(held) / model(run_id).parameters


def test_without_resharding_the_shard_is_held_beside_the_whole() -> None:
    """ZeRO-2 by the formula holds 4Ψ; FSDP holds the gathered parameters and its shard, 4Ψ(1 + 1/N)."""
    assert peak("zero2", "parameters") == pytest.approx(4 * (1 + 1 / 4), rel=0.02)
    assert peak("fsdp", "parameters") < 0.5 * peak("zero2", "parameters")


@pytest.mark.parametrize("run_id", ["ddp", "ddp-one-bucket", "ddp-accumulate"])
def test_plain_data_parallelism_holds_everything(run_id: str) -> None:
    got = [peak(run_id, c) for c in ("parameters", "gradients", "optimizer")]
    assert got == pytest.approx([4, 4, 8], rel=0.02)


# ---- prefetch


def test_without_prefetch_no_gather_is_hidden() -> None:
    """In the isolated replay; with it most gathers are, and the step is shorter."""
    assert METRICS["overlap"](timeline("fsdp-no-prefetch")) < 0.02
    assert METRICS["overlap"](timeline("fsdp")) > 0.2
    assert METRICS["step_time"](timeline("fsdp-no-prefetch")) > METRICS["step_time"](timeline("fsdp"))


def test_the_representative_step_is_not_the_first() -> None:
    assert all(representative_step(run(r)) >= 2 for r in (*BUCKETED, *SHARDED))
