"""Schedules of pipelines: p ranks, m micro-batches, v stages a rank.

F, I and W are the times of a stage's forward, input gradient and weight gradient of one micro-batch, B =
I + W that of its whole backward. Stages are equal and messages free where nothing else is said.
"""

from __future__ import annotations

from generator.timeline.formulas.entry import Number, formula

_SIMULATED = "derived here; checked by simulation of the schedule"


@formula("", _SIMULATED, 4, 8)
def pipeline_bubble_fraction(p: int, m: int) -> Number:
    """Idle over total of GPipe and 1F1B with p equal stages and m micro-batches: (p − 1)/(m + p − 1)."""
    return (p - 1) / (m + p - 1)


@formula("", "Narayanan et al. 2021 (arXiv 2104.04473), §2.2.1", 4, 8)
def pipeline_bubble_overhead(p: int, m: int) -> Number:
    """Idle over ideal of GPipe and 1F1B with p equal stages and m micro-batches: (p − 1)/m."""
    return (p - 1) / m


@formula("ns", _SIMULATED, 4, 8, 1_000_000, 2_000_000, forward="ns", backward="ns")
def pipeline_step_time(p: int, m: int, forward: float, backward: float, v: int = 1) -> Number:
    """Time of GPipe, 1F1B and, with v > 1, interleaved 1F1B: m·(F + B) + (p − 1)·(F + B)/v.

    F and B are those of a whole rank, of all its v stages.
    """
    return (m + (p - 1) / v) * (forward + backward)


@formula("ns", _SIMULATED, 4, 1_000_000, 2_000_000, forward="ns", backward="ns")
def pipeline_idle_time(p: int, forward: float, backward: float, v: int = 1) -> Number:
    """Idle time of a rank in GPipe, 1F1B and interleaved 1F1B: (p − 1)·(F + B)/v.

    It does not depend on m: more micro-batches make the bubble a smaller share, not shorter.
    """
    return (p - 1) * (forward + backward) / v


@formula(
    "ns",
    "derived here; checked by simulation of the schedule",
    8, 5_000_000, 10_000_000, 2_000_000, 4_000_000,
    all_forward="ns", all_backward="ns", longest_forward="ns", longest_backward="ns",
)  # fmt: skip
def gpipe_unequal_step_time(
    m: int, all_forward: float, all_backward: float, longest_forward: float, longest_backward: float
) -> Number:
    """Time of GPipe with unequal stages: ΣF + ΣB + (m − 1)·(max F + max B).

    1F1B takes at most as long, and how long depends on where the slow stage is.
    """
    return all_forward + all_backward + (m - 1) * (longest_forward + longest_backward)


@formula("", _SIMULATED, 4, 8, 0)
def pipeline_in_flight(p: int, m: int, stage: int) -> Number:
    """Most micro-batches whose activations 1F1B holds on a stage (from 0): min(m, p − stage).

    GPipe holds all m.
    """
    return min(m, p - stage)


@formula("", "Narayanan et al. 2021 (arXiv 2104.04473), §2.2.2; checked with PyTorch's own order", 4, 8, 2)
def interleaved_bubble_fraction(p: int, m: int, v: int) -> Number:
    """Idle over total of interleaved 1F1B with v stages on each of p ranks: (p − 1)/(v·m + p − 1)."""
    return (p - 1) / (v * m + p - 1)


@formula("", "derived here; checked with PyTorch's own order, for p | m", 4, 8, 2, 0)
def interleaved_in_flight(p: int, m: int, v: int, rank: int) -> Number:
    """Most stages' micro-batches that interleaved 1F1B holds: min(v·m, (v + 1)·p − 1 − 2·rank).

    Each is a v-th of a rank's layers.
    """
    return min(v * m, (v + 1) * p - 1 - 2 * rank)


@formula("", "derived here: a micro-batch crosses each cut down in forward and up in backward", 4, 8, 2)
def pipeline_messages(p: int, m: int, v: int = 1) -> Number:
    """Messages of a step with v stages on each of p ranks, one after the other: 2m(p·v − 1).

    In a V the two stages of the last rank follow each other, which needs none: 2m(p·v − 2).
    """
    return 2 * m * (p * v - 1)


@formula("", _SIMULATED, 4)
def gpipe_message_delays(p: int) -> Number:
    """How many message times c a step of GPipe is longer than with free messages: 2(p − 1)."""
    return 2 * (p - 1)


@formula("", "derived here; checked by simulation of the schedule for p | m and messages up to F/2", 4, 8)
def one_f_one_b_message_delays(p: int, m: int) -> Number:
    """How many message times c a step of 1F1B is longer than with free messages: 2(m(p − 1)/p + p − 2).

    Of a schedule that waits for what it receives and for nothing else.
    """
    return 2 * (m * (p - 1) / p + p - 2)


@formula("", "derived here from PyTorch's Schedule1F1B; checked by simulation for p | m", 4, 8)
def torch_one_f_one_b_message_delays(p: int, m: int) -> Number:
    """How many message times c PyTorch's 1F1B is longer than with free messages: 2m + 2p − 5.

    It issues each send together with the next receive and waits for both, so a stage also stands still
    until its own message has left: 2m/p − 1 message times more.
    """
    return 2 * m + 2 * p - 5


_PARTS = {"forward": "ns", "backward_input": "ns", "backward_weight": "ns"}


@formula(
    "ns",
    "derived here and checked by simulation; ZB-H1 of Qi et al. 2023 (arXiv 2401.10241)",
    4, 1_000_000, 1_000_000, 1_000_000,
    **_PARTS,
)  # fmt: skip
def zero_bubble_idle(p: int, forward: float, backward_input: float, backward_weight: float) -> Number:
    """Idle time of a rank in ZB-H1: (p − 1)·(F + I − W), or (p − 1) times F or I where that is more.

    Of a step that all ranks begin and end together. PyTorch's interleaved zero bubble with v stages on
    each rank has the v-th part of it.
    """
    return (p - 1) * max(forward, backward_input, forward + backward_input - backward_weight)


@formula("ns", "derived here; checked with PyTorch's own order, for F = I = W", 4, 1_000_000, part="ns")
def zbv_idle(p: int, part: float) -> Number:
    """Idle time of a rank in ZB-V, with F = I = W of one of its two stages: (p − 1)·F.

    The zero in its name is from a rank's own first forward to its own last backward: ranks that begin and
    end the step together bring it back.
    """
    return (p - 1) * part


@formula(
    "ns",
    "DualPipe's README (deepseek-ai/DualPipe) with p = PP/2; checked with PyTorch's own order, for F = I",
    4, 1_000_000, 1_000_000, 1_000_000,
    **_PARTS,
)  # fmt: skip
def dualpipev_idle(p: int, forward: float, backward_input: float, backward_weight: float) -> Number:
    """Idle time of a rank in DualPipeV: (p − 1)·(F&B + B − 3·W), with F&B = F + B and B = I + W.

    The times are those of one of a rank's two stages; F&B is a forward and a backward run together.
    """
    backward = backward_input + backward_weight
    return (p - 1) * (forward + backward + backward - 3 * backward_weight)


@formula("", "derived here; checked with PyTorch's own order", 4)
def zbv_in_flight(p: int) -> Number:
    """Most stages' micro-batches that every rank of ZB-V holds: 2·p, each half of a rank's layers."""
    return 2 * p


@formula("", "DualPipe's README (deepseek-ai/DualPipe): PP + 1 with PP = 2·p", 4)
def dualpipev_in_flight(p: int) -> Number:
    """Most stages' micro-batches that every rank of DualPipeV holds: 2·p + 1, half of its layers each."""
    return 2 * p + 1
