"""Links of a known rate: a network namespace for each node, joined by a bridge, limited by `tc tbf`.

A node is one rank, or several. It has one interface (a veth pair whose other end is a port of the
bridge); a token bucket on both of its ends limits what the node sends and what it receives. Needs root,
iproute2 and a kernel with namespaces, veth, bridge and tbf; where that is missing, ranks talk over
loopback at whatever rate the processor manages, and the manifest says so.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from generator.runs.manifest import Link

#: A segment that leaves the stack is up to 64 KiB and must fit the bucket whole: with less,
#: 16 MiB take twice as long.
BURST_BYTES = 128 * 1024
#: Below this rate (Mbit/s) that bucket would let whole messages pass free; it is an eighth as large, and
#: so are the segments.
SLOW_MBIT = 1000
SLOW_BURST_BYTES, SLOW_SEGMENT_BYTES = BURST_BYTES // 8, 8 * 1024
#: A queue shorter than this drops packets of a single connection.
LATENCY = "50ms"
INTERFACE = "link0"
PREFIX = "shardbook"
_CLONE_NEWNET = 0x40000000


@dataclass(frozen=True, slots=True)
class Links:
    """The network of one run: what a manifest says of it, and the namespace of each rank."""

    link: Link
    #: Names of namespaces by rank; empty on loopback.
    namespaces: tuple[str, ...] = ()
    #: Why the rate is not limited although it was asked for; empty otherwise.
    reason: str = ""

    def enter(self, rank: int) -> None:
        """Move the calling process into its rank's namespace and tell gloo which interface to use."""
        if not self.namespaces:
            os.environ["GLOO_SOCKET_IFNAME"] = "lo"
            return
        # os.setns exists from Python 3.12 on.
        libc = ctypes.CDLL(None, use_errno=True)
        with Path("/run/netns", self.namespaces[rank]).open("rb") as namespace:
            if libc.setns(namespace.fileno(), _CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns failed")
        os.environ["GLOO_SOCKET_IFNAME"] = INTERFACE


def burst_bytes(rate_mbit: int) -> int:
    """Size of the token bucket of a link: what may pass at once after a pause."""
    return SLOW_BURST_BYTES if rate_mbit < SLOW_MBIT else BURST_BYTES


def sent_bytes() -> int:
    """Bytes that the calling process's interface has sent so far (loopback where there is none other)."""
    lines = Path("/proc/self/net/dev").read_text().splitlines()[2:]
    counters = {name.strip(): numbers.split() for name, _, numbers in (x.partition(":") for x in lines)}
    return int(counters.get(INTERFACE, counters["lo"])[8])


@contextmanager
def links(ranks: int, rate_mbit: int, calibration: str = "", *, ranks_per_node: int = 1) -> Iterator[Links]:
    """The network for some ranks, taken down on leaving, whatever happens. No rate: loopback.

    Ranks of one node, `ranks_per_node` following each other, share a namespace and its interface: among
    themselves they talk over its loopback, which nothing limits.
    """
    if ranks < 2:
        yield Links(Link("none", 0, 0))
        return
    if not rate_mbit:
        yield Links(Link("loopback", 0, 0))
        return
    base = f"{PREFIX}-{os.getpid()}"
    reason = _missing()
    try:
        if not reason:
            _remove_abandoned()
            try:
                nodes = _set_up(base, -(-ranks // ranks_per_node), rate_mbit)
            except (OSError, subprocess.CalledProcessError) as error:
                reason = _last_line(error)
        if reason:
            yield Links(Link("loopback", 0, 0), reason=reason)
        else:
            names = tuple(nodes[rank // ranks_per_node] for rank in range(ranks))
            link = Link("tbf", rate_mbit, burst_bytes(rate_mbit), calibration, ranks_per_node)
            yield Links(link, names)
    finally:
        _remove(name for name in _existing() if name.startswith(f"{base}-"))


def _missing() -> str:
    """What stands against limiting the rate, before anything is tried."""
    if os.geteuid() != 0:
        return "not root"
    for program in ("ip", "tc"):
        if shutil.which(program) is None:
            return f"no program '{program}' (iproute2)"
    return ""


def _set_up(base: str, nodes: int, rate_mbit: int) -> tuple[str, ...]:
    """Make the bridge and a namespace for each node; their names."""
    bridge = f"{base}-bridge"
    _run(f"ip netns add {bridge}")
    _run(f"ip -n {bridge} link add name bridge0 type bridge")
    _run(f"ip -n {bridge} link set bridge0 up")
    bucket = f"tbf rate {rate_mbit}mbit burst {burst_bytes(rate_mbit)} latency {LATENCY}"
    names = tuple(f"{base}-{node}" for node in range(nodes))
    for node, name in enumerate(names):
        port = f"port{node}"
        _run(f"ip netns add {name}")
        _run(f"ip -n {bridge} link add {port} type veth peer name {INTERFACE} netns {name}")
        _run(f"ip -n {bridge} link set {port} master bridge0 up")
        _run(f"ip -n {name} addr add 10.99.0.{node + 1}/24 dev {INTERFACE}")
        _run(f"ip -n {name} link set {INTERFACE} up")
        _run(f"ip -n {name} link set lo up")
        for setting in ("tcp_congestion_control=reno", "tcp_slow_start_after_idle=0"):
            _run(f"ip netns exec {name} sysctl -qw net.ipv4.{setting}")
        if rate_mbit < SLOW_MBIT:
            _run(f"ip -n {name} link set dev {INTERFACE} gso_max_size {SLOW_SEGMENT_BYTES}")
        _run(f"tc -n {name} qdisc add dev {INTERFACE} root {bucket}")
        _run(f"tc -n {bridge} qdisc add dev {port} root {bucket}")
    return names


def _run(command: str) -> str:
    done = subprocess.run(command.split(), capture_output=True, text=True, check=True)
    return done.stdout


def _last_line(error: OSError | subprocess.CalledProcessError) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        lines = str(error.stderr).strip().splitlines() or [str(error)]
        return f"{' '.join(error.cmd[:6])} …: {lines[-1]}"
    return str(error)


def _existing() -> list[str]:
    if shutil.which("ip") is None:
        return []
    with suppress(OSError, subprocess.CalledProcessError):
        return [line.split()[0] for line in _run("ip netns list").splitlines() if line.strip()]
    return []


def _remove(names: Iterator[str]) -> None:
    """Remove namespaces; their interfaces, routes and buckets go with them."""
    for name in names:
        with suppress(OSError, subprocess.CalledProcessError):
            _run(f"ip netns del {name}")


def _remove_abandoned() -> None:
    """Remove what a recorder left behind that was killed outright and could not."""

    def abandoned(name: str) -> bool:
        prefix, _, rest = name.partition("-")
        pid = rest.partition("-")[0]
        return prefix == PREFIX and pid.isdigit() and not Path("/proc", pid).exists()

    _remove(name for name in _existing() if abandoned(name))
