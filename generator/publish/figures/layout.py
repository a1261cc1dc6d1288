"""Where things stand in a timeline figure, wide and narrow."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Layout:
    """Sizes of a timeline figure in px. The lanes of a rank follow each other downwards."""

    width: int
    left: int
    right: int
    compute: int
    layers: int
    comm: int
    memory: int
    #: Between the lanes of one rank and those of the next.
    gap: int
    #: The rank's name stands above its lanes instead of beside them.
    above: bool
    #: Least distance of two ticks of the time axis.
    tick: int
    #: Type size of the words in blocks, px: a class s11 or s12 exists for it.
    words: int

    #: The axis: baseline of its numbers, and the line below them.
    axis_text = 12
    axis_line = 20

    @property
    def plot(self) -> int:
        return self.width - self.left - self.right

    def top(self, bracket: bool) -> int:
        """Where the first rank begins: below the axis, the bracket and, if it is above, its name."""
        return self.axis_line + (26 if bracket else 12) + (20 if self.above else 0)

    def layer_y(self, y: int) -> int:
        return y + self.compute + 1

    def comm_y(self, y: int, layered: bool) -> int:
        return y + self.compute + (self.layers + 4 if layered else 3)

    def memory_y(self, y: int, layered: bool, talks: bool) -> int:
        return self.comm_y(y, layered) + (self.comm + 5 if talks else 3)

    def rank_height(self, layered: bool, talks: bool, remembers: bool) -> int:
        """From the top of a rank's computation lane to the bottom of its last lane."""
        if remembers:
            return self.memory_y(0, layered, talks) + self.memory
        if talks:
            return self.comm_y(0, layered) + self.comm
        return self.compute + (self.layers + 1 if layered else 0)


WIDE = Layout(
    width=1200,
    left=88,
    right=74,
    compute=26,
    layers=7,
    comm=11,
    memory=24,
    gap=20,
    above=False,
    tick=90,
    words=12,
)
NARROW = Layout(
    width=354,
    left=0,
    right=0,
    compute=22,
    layers=7,
    comm=11,
    memory=20,
    gap=36,
    above=True,
    tick=64,
    words=11,
)
