"""Shuffled batches of a table in pieces: read ahead in threads, in memory that the rows do not set.

In each epoch the pieces are put in another order, one after another, and this sequence of rows is
cut into a few lanes of equal length. A lane reads its pieces in turn, a window of them at a time,
and shuffles the rows of a window. A batch has as many rows of each lane, so that it mixes pieces
from all over the table even if a window is one piece.

The order is a function of the seed, the epoch and the table alone: where a step's rows are is known
without reading what came before. So training resumes anywhere, and ranks that share a batch read
the lanes of their part only, however many ranks there are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from nits.pnn.random import another
from nits.training.rows import Array, Batch, shuffled

if TYPE_CHECKING:
    from nits.training.streamed import Piece, Streamed

MOST_LANES = 8

BUFFER = 2**28
"""Bytes of the windows of all lanes, those that are read ahead included."""

THREADS = 2
"""Pieces that are read at a time."""


class Segment(NamedTuple):
    """Rows of a piece, without those that are left out: from `start` to before `stop`."""

    piece: int
    start: int
    stop: int

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return self.stop - self.start


class Course(NamedTuple):
    """What a lane reads in an epoch.

    windows: The segments of each window.
    ends: The rows of the lane before each window, and of all windows.
    """

    windows: list[list[Segment]]
    ends: list[int]

    @classmethod
    def of(cls, segments: list[Segment], rows: int) -> Course:
        """Groups segments into windows of at most so many rows, if a segment has no more."""
        found: list[list[Segment]] = []
        for segment in segments:
            if found and _rows(found[-1]) + segment.rows <= rows:
                found[-1].append(segment)
            else:
                found.append([segment])
        return cls(found, [0, *accumulate(map(_rows, found))])


class Window(NamedTuple):
    """Rows in memory, shuffled."""

    x: Tensor
    context: Tensor | None


Key = tuple[int, int, int]
"""The epoch, the lane, and the number of the window in it."""


class Lanes:
    """Batches of a table in pieces; see `nits.training.rows.Feed`."""

    def __init__(self, rows: Streamed, size: int, seed: int, part: slice = slice(None)) -> None:
        self.rows, self.size, self.seed = rows, size, seed
        self.part = range(size)[part]
        self.per_epoch = max(1, len(rows) // size)
        self.starts = [0, *accumulate(rows.pieces.sizes)]
        self.gone = [
            rows.away[(rows.away >= a) & (rows.away < b)] - a
            for a, b in zip(self.starts, self.starts[1:], strict=False)
        ]
        self.left = [n - len(g) for n, g in zip(rows.pieces.sizes, self.gone, strict=True)]
        width = 4 * (_width(rows.kept.x) + _width(rows.kept.context))
        self.count = lanes(size, max(self.left), len(self.left), width)
        self.window = max(1, BUFFER // (2 * self.count * width))
        self.plans: dict[int, list[Course]] = {}
        self.windows: dict[Key, Future[Window]] = {}
        self.readers = ThreadPoolExecutor(THREADS, "nits-reader")

    def batch(self, step: int, like: Tensor) -> Batch:
        """Returns the rows of a step, or the part of them."""
        epoch, position = divmod(step, self.per_epoch)
        each = self.size // self.count
        found: list[Window] = []
        used: set[Key] = set()
        for lane in range(self.count):
            low, high = max(self.part.start, lane * each), min(self.part.stop, (lane + 1) * each)
            if low < high:
                start = position * each - lane * each
                for key, rows in self._spans(epoch, lane, start + low, start + high):
                    window = self._read(key)
                    used.add(key)
                    found.append(Window(window.x[rows], _cut(window.context, rows)))
        self._look_ahead(used)
        x = torch.cat([window.x for window in found]).to(like)
        given = [window.context for window in found if window.context is not None]
        if not given:
            return Batch(x, None, None)
        context = torch.cat(given)
        context = context if self.rows.read is None else self.rows.read(context)
        return Batch(x, context.to(like), None)

    def close(self) -> None:
        """Ends the threads that read ahead."""
        self.readers.shutdown(wait=False, cancel_futures=True)
        self.windows.clear()

    def _spans(self, epoch: int, lane: int, start: int, stop: int) -> Iterator[tuple[Key, slice]]:
        """Yields the windows that have the rows of a lane from start to stop, and which of them."""
        ends = self._plan(epoch)[lane].ends
        while start < stop:
            k = bisect_right(ends, start) - 1
            end = min(stop, ends[k + 1])
            yield (epoch, lane, k), slice(start - ends[k], end - ends[k])
            start = end

    def _plan(self, epoch: int) -> list[Course]:
        """Returns what each lane reads in an epoch."""
        if epoch not in self.plans:
            self.plans = {e: p for e, p in self.plans.items() if e >= epoch - 1}
            order = shuffled(len(self.left), self.seed, epoch).tolist()
            length = len(self.rows) // self.count
            parts = _parts([Segment(p, 0, self.left[p]) for p in order], length, self.count)
            self.plans[epoch] = [Course.of(segments, self.window) for segments in parts]
        return self.plans[epoch]

    def _read(self, key: Key) -> Window:
        """Returns a window, which is mostly there already."""
        if key not in self.windows:
            self._begin(key)
        return self.windows[key].result()

    def _begin(self, key: Key) -> None:
        """Has a thread read a window."""
        epoch, lane, k = key
        segments = self._plan(epoch)[lane].windows[k]
        seed = another(self.seed * 1_000_003 + epoch, lane * 2**20 + k)
        self.windows[key] = self.readers.submit(self._window, segments, seed)

    def _look_ahead(self, used: set[Key]) -> None:
        """Has the windows after those in use read, and forgets all others."""
        last = {lane: max(key for key in used if key[1] == lane) for _, lane, _ in used}
        ahead = {self._next(key) for key in last.values()}
        for key in [key for key in self.windows if key not in used and key not in ahead]:
            self.windows.pop(key).cancel()
        for key in sorted(ahead - set(self.windows)):
            self._begin(key)

    def _next(self, key: Key) -> Key:
        epoch, lane, k = key
        last = k + 1 == len(self._plan(epoch)[lane].windows)
        return (epoch + 1, lane, 0) if last else (epoch, lane, k + 1)

    def _window(self, segments: list[Segment], seed: int) -> Window:
        """Reads a window and shuffles it."""
        source = torch.Generator().manual_seed(seed)
        order = torch.randperm(_rows(segments), generator=source)
        kept = self.rows.kept
        x = torch.empty(len(order), kept.x.shape[1], dtype=torch.float32)
        context = None
        if kept.context is not None:
            context = torch.empty(len(order), kept.context.shape[1], dtype=torch.float32)
        done = 0
        for segment in segments:
            at = order[done : done + segment.rows]
            piece = self._piece(segment)
            x[at] = piece.x
            if context is not None and piece.context is not None:
                context[at] = piece.context
            done += segment.rows
        return Window(x, context)

    def _piece(self, segment: Segment) -> Piece:
        """Reads the rows of a segment."""
        piece, size = self.rows.pieces.read(segment.piece), self.rows.pieces.sizes[segment.piece]
        if len(piece.x) != size:
            raise ValueError(
                f"a piece of the table must have {size} rows, as it had before, but has "
                f"{len(piece.x)}; its files must not change while they are read."
            )
        rows = slice(segment.start, segment.stop)
        if not len(self.gone[segment.piece]):
            return piece._replace(x=piece.x[rows], context=_cut(piece.context, rows))
        here = torch.ones(size, dtype=torch.bool)
        here[self.gone[segment.piece]] = False
        index = here.nonzero().flatten()[rows]
        context = None if piece.context is None else piece.context[index]
        return piece._replace(x=piece.x[index], context=context)


def lanes(size: int, largest: int, pieces: int, width: int) -> int:
    """Returns how many lanes there are: a power of two that divides the batch.

    size: Of a batch. largest: Rows of the largest piece. width: Bytes of a row.
    """
    count = MOST_LANES
    while count > 1 and (size % count or count > pieces or 2 * count * largest * width > BUFFER):
        count //= 2
    return count


def _parts(segments: list[Segment], length: int, count: int) -> list[list[Segment]]:
    """Cuts a sequence of segments into parts of equal length; what is left over is left out."""
    found: list[list[Segment]] = [[] for _ in range(count)]
    lane, room = 0, length
    for segment in segments:
        while segment.rows and lane < count:
            taken = min(room, segment.rows)
            found[lane].append(segment._replace(stop=segment.start + taken))
            segment, room = segment._replace(start=segment.start + taken), room - taken
            if not room:
                lane, room = lane + 1, length
    return found


def _rows(segments: list[Segment]) -> int:
    return sum(segment.rows for segment in segments)


def _cut(context: Tensor | None, rows: slice) -> Tensor | None:
    return None if context is None else context[rows]


def _width(context: Array | None) -> int:
    return 0 if context is None else int(context.shape[1])
