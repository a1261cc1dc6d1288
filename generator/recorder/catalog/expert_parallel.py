"""Expert parallelism, and the single processes that train the same mixture of experts."""

from __future__ import annotations

from generator.recorder.spec import RunSpec, scheme_module
from generator.runs.manifest import Options

_EXPERTS = 8
_HOW = {
    "balanced": "Tokens are dealt out to the experts in turn, so all have the same load.",
    "skewed": "Every other token goes to the first expert and the rest are dealt out, "
    "so it has nine sixteenths of the load.",
}


def _single(router: str) -> RunSpec:
    return RunSpec(
        id=f"single-moe-{router}",
        title=f"Single process, mixture of experts, {router}",
        description=f"One process trains the model with eight experts in place of each MLP. {_HOW[router]}",
        scheme="single-moe",
        mesh={"dp": 1},
        module=scheme_module("single_experts"),
        options=Options(experts=_EXPERTS, router=router),
        rate_mbit=0,
        partner="",
    )


def _parallel(router: str) -> RunSpec:
    return RunSpec(
        id=f"ep-{router}",
        title=f"Expert parallelism, {router}",
        description="Four ranks hold two of eight experts of every layer, and all of the rest. Tokens travel "
        f"to their expert and back by all-to-alls. {_HOW[router]}",
        scheme="ep",
        mesh={"ep": 4},
        module=scheme_module("expert_parallel"),
        options=Options(experts=_EXPERTS, router=router),
        partner=f"single-moe-{router}",
    )


SPECS = tuple(make(router) for router in _HOW for make in (_single, _parallel))
