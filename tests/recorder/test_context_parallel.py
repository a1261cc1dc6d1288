"""Ring attention and Ulysses, really run: four ranks, two for Ulysses."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from generator.recorder import RUNS
from tests.recorder.small import DETAIL, LAYERS, Event, SmallRun, record_small

pytest.importorskip("torch", reason="recording needs PyTorch: pip install shardbook[record]")

RANKS = {"cp-ring": 4, "cp-ring-zigzag": 4, "cp-ulysses": 2}
RINGS = ("cp-ring", "cp-ring-zigzag")
#: Of the small shape.
SEQUENCES, TOKENS, HEADS, WIDTH = 4, 32, 4, 64
ATTENTION = "aten::_scaled_dot_product_flash_attention_for_cpu"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SmallRun]:
    out = tmp_path_factory.mktemp("runs")
    found = {"single-long": record_small(RUNS["single-long"], out)}
    for name, ranks in RANKS.items():
        found[name] = record_small(RUNS[name], out, mesh={"cp": ranks})
    return found


def calls_by_layer(run: SmallRun, rank: int, step: int = 2) -> dict[tuple[str, int], list[Event]]:
    """Arguments of the calls inside each layer, by phase and layer."""
    layers = [e for e in run.layers(rank, step) if "layer" in e["args"]]
    found: dict[tuple[str, int], list[Event]] = {}
    for layer in layers:
        end = layer["ts"] + layer["dur"]
        inside = [e for e in run.spans(rank, step) if layer["ts"] <= e["ts"] < end]
        key = (layer["args"]["phase"], layer["args"]["layer"])
        found[key] = [e["args"] for e in inside if "op" in e["args"]]
    return found


@pytest.mark.parametrize("name", RANKS)
def test_losses_agree_with_the_single_process(name: str, runs: dict[str, SmallRun]) -> None:
    assert runs[name].losses == pytest.approx(runs["single-long"].losses, rel=1e-6)


@pytest.mark.parametrize("name", RANKS)
def test_all_gradients_are_added_up_once_after_backward(name: str, runs: dict[str, SmallRun]) -> None:
    run = runs[name]
    assert run.manifest.model is not None
    reduced = [c for c in run.calls() if c["op"] == "all_reduce"]
    assert [c["bytes"] for c in reduced] == [4 * run.manifest.model.parameters]
    assert run.calls()[-1] == reduced[0]


@pytest.mark.parametrize("name", RINGS)
@pytest.mark.parametrize("rank", range(4))
def test_keys_and_values_go_round_twice_and_their_gradients_go_home(
    name: str, rank: int, runs: dict[str, SmallRun]
) -> None:
    """A layer's messages: N - 1 of K and V forward; backward those again and N of dK and dV."""
    block = 4 * 2 * SEQUENCES * (TOKENS // 4) * WIDTH
    for (phase, _), calls in calls_by_layer(runs[name], rank).items():
        sends = [c for c in calls if c["op"] == "send"]
        tags = Counter(c["tag"] for c in sends)
        assert tags == ({0: 3} if phase == "forward" else {0: 3, 1: 4})
        assert {(c["src"], c["dst"], c["bytes"]) for c in sends} == {(rank, (rank + 1) % 4, block)}
        assert {c["src"] for c in calls if c["op"] == "recv"} == {(rank - 1) % 4}


def attended(run: SmallRun, rank: int, name: str) -> list[int]:
    """Pairs of query and key that the mask leaves, of each attention of a forward or of a backward."""
    found = []
    for e in run.spans(rank, DETAIL):
        if e["name"] == name:
            # In backward the gradient comes before queries and keys.
            first = 0 if name == ATTENTION else 1
            queries, keys = (e["args"]["shapes"][i][2] for i in (first, first + 1))
            found.append(queries * (queries + 1) // 2 if e["args"]["causal"] else queries * keys)
    return found


@pytest.mark.parametrize("name", [ATTENTION, ATTENTION + "_backward"])
def test_contiguous_order_gives_later_ranks_more_and_zigzag_all_the_same(
    name: str, runs: dict[str, SmallRun]
) -> None:
    c, s = TOKENS // 4, TOKENS
    plain = [sum(attended(runs["cp-ring"], r, name)) for r in range(4)]
    assert plain == [LAYERS * (r * c * c + c * (c + 1) // 2) for r in range(4)]
    fair = [sum(attended(runs["cp-ring-zigzag"], r, name)) for r in range(4)]
    assert fair == [LAYERS * s * (s + 1) // 8] * 4
    # Computed is the full square of a diagonal tile, so in tiles: 4r + 3 of rank r, or 9 of each.
    assert [len(attended(runs["cp-ring"], r, name)) for r in range(4)] == [
        LAYERS * (4 * r + 3) for r in range(4)
    ]
    assert [len(attended(runs["cp-ring-zigzag"], r, name)) for r in range(4)] == [LAYERS * 9] * 4


@pytest.mark.parametrize("name", RINGS)
def test_a_block_travels_while_it_is_attended_to(name: str, runs: dict[str, SmallRun]) -> None:
    """Between the first send of a layer and the wait for it the last rank has its first turn's tiles."""
    spans = runs[name].spans(3, DETAIL)
    send = next(i for i, e in enumerate(spans) if e["args"].get("op") == "send")
    wait = next(i for i, e in enumerate(spans) if e["name"] == "wait")
    assert spans[wait]["args"]["call"] == spans[send]["args"]["call"]
    assert [e["name"] for e in spans[send:wait]].count(ATTENTION) == 3


def test_ulysses_swaps_four_tensors_forward_and_four_gradients_back(runs: dict[str, SmallRun]) -> None:
    tensor = 4 * SEQUENCES * (TOKENS // 2) * WIDTH
    by_layer = calls_by_layer(runs["cp-ulysses"], 1)
    assert set(by_layer) == {(p, n) for p in ("forward", "backward") for n in range(LAYERS)}
    for calls in by_layer.values():
        assert [(c["op"], c["bytes"]) for c in calls] == [("all_to_all", tensor)] * 4


def test_ulysses_attends_to_all_tokens_with_a_share_of_the_heads(runs: dict[str, SmallRun]) -> None:
    for e in runs["cp-ulysses"].spans(0, DETAIL):
        if e["name"] == ATTENTION:
            assert e["args"]["shapes"][0] == [SEQUENCES, HEADS // 2, TOKENS, WIDTH // HEADS]


@pytest.mark.parametrize("order", ["contiguous", "zigzag"])
def test_the_tiles_of_all_ranks_are_the_sequence(order: str) -> None:
    from generator.recorder.schemes.sequence_parts import tiles_of

    tiles = [t for rank in range(4) for t in tiles_of(rank, 4, order)]
    assert sorted(tiles) == list(range(8))
    work = [sum(t + 1 for t in tiles_of(rank, 4, order)) for rank in range(4)]
    assert work == ([3, 7, 11, 15] if order == "contiguous" else [9] * 4)


def test_an_unknown_position_would_be_seen_in_the_losses(
    runs: dict[str, SmallRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were zig-zag's tokens to take the positions of the first ones, no loss would agree."""
    import torch

    from generator.recorder.model import Embedding

    def wrong(self: Embedding, tokens: torch.Tensor) -> torch.Tensor:
        vectors: torch.Tensor = self.token(tokens) + self.position(torch.arange(tokens.shape[1]))
        return vectors

    monkeypatch.setattr(Embedding, "forward", wrong)
    run = record_small(RUNS["cp-ring-zigzag"], tmp_path, mesh={"cp": 2})
    assert run.losses != pytest.approx(runs["single-long"].losses, rel=1e-4)
