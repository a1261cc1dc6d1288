"""The committed recordings of context parallelism, held against closed forms."""

from __future__ import annotations

from collections import Counter

import pytest

from generator.runs.run import Run
from generator.timeline.formulas import FORMULAS
from generator.timeline.metrics import METRICS
from generator.timeline.spans import Call, Timeline
from tests.committed import model, run, timeline

ALL = ("cp-ring", "cp-ring-zigzag", "cp-ulysses")
RINGS = ALL[:2]
N, LAYERS, HEADS, WIDTH, VOCABULARY = 4, 8, 8, 256, 1024
#: One sequence: its tokens and those of a rank.
S = 2048
C = S // N
ATTENTION = "aten::_scaled_dot_product_flash_attention_for_cpu"
BOTH = (ATTENTION, ATTENTION + "_backward")


def recorded(run_id: str) -> Timeline:
    return timeline(run_id, "recorded")


def calls(run_id: str, phase: str, layer: int) -> list[Call]:
    return [c for c in recorded(run_id).calls if (c.phase, c.layer) == (phase, layer)]


@pytest.mark.parametrize("run_id", RINGS)
@pytest.mark.parametrize("layer", range(LAYERS))
def test_messages_of_a_layer(run_id: str, layer: int) -> None:
    """Every message has keys and values, or their gradients, of one rank's tokens: 2 c h elements."""
    hops = {"forward": N - 1, "backward": N - 1 + N}
    assert FORMULAS["cp_ring_messages"].function(N) == sum(hops.values())
    for phase, count in hops.items():
        found = calls(run_id, phase, layer)
        assert Counter(c.ranks for c in found) == {(r, (r + 1) % N): count for r in range(N)}
        assert {(c.op, c.bytes) for c in found} == {("send", 4 * 2 * C * WIDTH)}


@pytest.mark.parametrize("layer", range(LAYERS))
def test_ulysses_has_four_all_to_alls_forward_and_four_backward(layer: int) -> None:
    for phase in ("forward", "backward"):
        assert [(c.op, c.bytes) for c in calls("cp-ulysses", phase, layer)] == [
            ("all_to_all", 4 * C * WIDTH)
        ] * 4


@pytest.mark.parametrize("run_id", ALL)
def test_bytes_that_a_rank_sends(run_id: str) -> None:
    """Ring: 2(N-1) c h elements a layer forward, 2(N-1) + 2N backward. Ulysses: (N-1)/N of 4 c h, twice."""
    m = model(run_id)
    ring = {"forward": 2 * (N - 1) * C * WIDTH, "backward": (2 * (N - 1) + 2 * N) * C * WIDTH}
    swapped = dict.fromkeys(ring, 4 * C * WIDTH * (N - 1) / N)
    for phase, elements in (ring if run_id in RINGS else swapped).items():
        sent = METRICS["wire_bytes"](recorded(run_id), rank=1, phase=phase)
        assert sent == pytest.approx(4 * LAYERS * elements), phase
    whole = FORMULAS["cp_ring_wire_elements" if run_id in RINGS else "cp_ulysses_wire_elements"]
    assert whole.function(1, S, WIDTH, N) == sum((ring if run_id in RINGS else swapped).values())
    # The gradients, all at once.
    reduced = [c.bytes for c in recorded(run_id).calls if c.op == "all_reduce"]
    assert reduced == [4 * m.parameters]


def operations(ours: Run, names: tuple[str, ...]) -> list[list[int]]:
    """Thread-CPU ns of some operators in the step in detail, by rank."""
    found = []
    for trace in ours.ranks:
        wanted = [i for i in range(len(trace)) if trace.text(int(trace.name[i])) in names]
        found.append([int(trace.cpu_dur_ns[i]) for i in wanted])
    return found


@pytest.mark.parametrize("name", BOTH)
def test_tiles_that_each_rank_attends_to(name: str) -> None:
    """Of 2N tiles of tokens each rank has two. Contiguous: 4i + 3 pairs of tiles; zig-zag: 2N + 1."""
    plain = [len(times) for times in operations(run("cp-ring"), (name,))]
    assert plain == [LAYERS * (4 * i + 3) for i in range(N)]
    fair = [len(times) for times in operations(run("cp-ring-zigzag"), (name,))]
    assert fair == [LAYERS * (2 * N + 1)] * N


def test_attention_takes_later_ranks_longer_unless_the_order_is_zigzag() -> None:
    """Shares near (2i + 1)/N² of the mask; a diagonal tile costs a whole one, which makes it (4i + 3)/36."""
    plain = [sum(times) for times in operations(run("cp-ring"), BOTH)]
    shares = [t / sum(plain) for t in plain]
    assert shares == pytest.approx([(4 * i + 3) / 36 for i in range(N)], abs=0.02)
    of_mask = FORMULAS["causal_share"].function
    assert shares == pytest.approx([of_mask(N, i) for i in range(N)], abs=0.04)
    fair = [sum(times) for times in operations(run("cp-ring-zigzag"), BOTH)]
    assert max(plain) / max(fair) == pytest.approx(FORMULAS["causal_lockstep"].function(N), rel=0.1)
    assert [t / sum(fair) for t in fair] == pytest.approx([1 / N] * N, abs=0.02)


def test_zigzag_levels_the_ranks_and_shortens_the_step() -> None:
    busy = METRICS["busy"]
    plain, fair = ([busy(timeline(r), rank=i) for i in range(N)] for r in RINGS)
    assert plain == sorted(plain)
    assert max(plain) / min(plain) > 1.5
    assert max(fair) / min(fair) < 1.1
    assert timeline("cp-ring-zigzag").step_ns < timeline("cp-ring").step_ns


@pytest.mark.parametrize("run_id", ["single-long", *ALL])
def test_activations_are_those_of_the_tokens_that_are_here(run_id: str) -> None:
    """L(16e + 4c + ac) + 2e + 2c + cV elements for c tokens, e = ch.

    Ulysses keeps attention's result twice: by heads for attention, by tokens for what comes after.
    """
    c = S if run_id == "single-long" else C
    e = c * WIDTH
    layers = LAYERS * ((17 if run_id == "cp-ulysses" else 16) * e + 4 * c + HEADS * c)
    expected = 4 * (layers + 2 * e + 2 * c + c * VOCABULARY)
    found = METRICS["peak_memory"](recorded(run_id), rank=0, category="activations")
    assert found == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("run_id", ALL)
def test_every_rank_holds_the_whole_model(run_id: str) -> None:
    m = model(run_id)
    assert m.parameters_per_rank == (m.parameters,) * N
    for category, copies in {"parameters": 1, "gradients": 1, "optimizer": 2}.items():
        held = METRICS["peak_memory"](recorded(run_id), rank=2, category=category)
        assert held == pytest.approx(copies * 4 * m.parameters, rel=0.02)
