# SPDX-License-Identifier: Apache-2.0
"""FrameSynchronizer: pairs images, and adds the attitude nearest in time. Pure: images and attitudes are opaque."""

import itertools
import math
from collections import deque
from dataclasses import dataclass, replace
from typing import Any

#: Kinds of messages.
LEFT, RIGHT, ATTITUDE = "left", "right", "attitude"
#: Time for which a pair waits for an attitude that is at least as new, before it uses an older one.
ATTITUDE_TIMEOUT_S = 0.1
NANOSECONDS = 1_000_000_000
#: Buffered attitudes, and buffered images per side without their other side.
_ATTITUDES_KEPT = 200
_UNPAIRED_KEPT = 8


@dataclass(frozen=True, slots=True)
class SynchronizedFrame:
    """Pair of images, with the attitude or pose nearest in time once it is known."""

    stamp_ns: int  # of the images
    left: Any
    right: Any
    completed_s: float  # time of the second image
    attitude: Any = None


class FrameSynchronizer:
    """Accepts messages from any thread by `add`, and provides frames to one thread. Times are arguments, of one clock.

    Frames that are not taken are dropped and counted: all but the newest, or with `keeps_order` the oldest of more than
    `depth`. When stamps run backwards, a new simulation has started, and all earlier messages are discarded.
    """

    def __init__(self, depth: int, *, keeps_order: bool, is_mono: bool, tolerance_s: float = 0.0) -> None:
        """Prepare for messages.

        Args:
            depth: number of buffered pairs, and of images per side that were not processed, as without a link.
            keeps_order: whether `take` returns pairs in order instead of the newest one.
            is_mono: whether the left image is used for both sides.
            tolerance_s: maximum difference of the stamps of a pair.
        """
        self._keeps_order = keeps_order
        self._is_mono = is_mono
        self._tolerance_ns = round(tolerance_s * NANOSECONDS)
        self._numbers = itertools.count()  # of messages, in order of arrival
        kept = {LEFT: depth, RIGHT: depth, ATTITUDE: _ATTITUDES_KEPT}
        self._waiting: dict[str, deque[tuple[int, int, Any, float]]] = {
            kind: deque(maxlen=most) for kind, most in kept.items()
        }
        self._unpaired: dict[str, dict[int, Any]] = {LEFT: {}, RIGHT: {}}
        self._pairs: deque[SynchronizedFrame] = deque(maxlen=depth)
        self._attitudes: deque[tuple[int, Any]] = deque(maxlen=_ATTITUDES_KEPT)
        self._paired_s = -math.inf  # when the last pair was complete
        self._received_s: dict[str, float] = {}  # when each kind of message was last received
        self._pair_ns = 0  # stamp of the newest pair
        #: Stamp of the newest image.
        self.newest_ns = 0
        #: Dropped pairs, and images without their other side.
        self.dropped = 0
        self.unmatched = 0

    def add(self, kind: str, stamp_ns: int, message: Any, now_s: float) -> None:
        """Add an image or an attitude that has just arrived. Thread-safe."""
        if kind != ATTITUDE:
            self.newest_ns = stamp_ns
        self._waiting[kind].append((next(self._numbers), stamp_ns, message, now_s))

    def process(self) -> None:
        """Process the added messages."""
        while waiting := [kind for kind, messages in self._waiting.items() if messages]:
            kind = min(waiting, key=lambda kind: self._waiting[kind][0][0])
            _, stamp_ns, message, came_s = self._waiting[kind].popleft()
            self._received_s[kind] = came_s
            if kind == ATTITUDE:
                self._add_attitude(stamp_ns, message)
            else:
                self._add_image(kind, stamp_ns, message, came_s)

    def _add_image(self, side: str, stamp_ns: int, image: Any, now_s: float) -> None:
        if self._is_mono:
            self._complete(SynchronizedFrame(stamp_ns, image, image, now_s))
            return
        others = self._unpaired[RIGHT if side == LEFT else LEFT]
        other_ns = self._match(others, stamp_ns)
        if other_ns is None:
            self._keep_unpaired(self._unpaired[side], stamp_ns, image)
            return
        other = others.pop(other_ns)
        if side == RIGHT:
            stamp_ns, image, other = other_ns, other, image
        self._complete(SynchronizedFrame(stamp_ns, image, other, now_s))

    def _add_attitude(self, stamp_ns: int, attitude: Any) -> None:
        if self._attitudes and stamp_ns < self._attitudes[-1][0]:
            self._attitudes.clear()
        self._attitudes.append((stamp_ns, attitude))

    def take(self, now_s: float, max_age_s: float) -> SynchronizedFrame | None:
        """Return the newest frame, or the next one in order, that is at most `max_age_s` old."""
        self.process()
        while self._pairs and now_s - self._pairs[0].completed_s > max_age_s:
            self._pairs.popleft()
            self.dropped += 1
        for pair in tuple(self._pairs if self._keeps_order else reversed(self._pairs)):
            if (attitude := self._attitude_for(pair, now_s, max_age_s)) is not None:
                break
            if self._keeps_order:
                return None
        else:
            return None
        while self._pairs.popleft() is not pair:
            self.dropped += 1
        return replace(pair, attitude=attitude)

    def missing(self, now_s: float, max_age_s: float) -> list[str]:
        """Return the kinds of messages that were not received within the last `max_age_s`."""
        self.process()
        kinds = (LEFT, *(() if self._is_mono else (RIGHT,)), ATTITUDE)
        return [kind for kind in kinds if now_s - self._received_s.get(kind, -math.inf) > max_age_s]

    def mismatch(self, now_s: float, max_age_s: float) -> str:
        """Return why the messages of the last `max_age_s` make no frame; empty if there is no reason."""
        self.process()
        if now_s - self._paired_s > max_age_s:
            allowed = f"stamps within {self._tolerance_ns / 1e9:g} s" if self._tolerance_ns else "the same stamp"
            return f"no left and right image have {allowed} (image_tolerance)"
        if self._pairs:
            return f"the stamps of images and attitude differ by more than {max_age_s:g} s"
        return ""

    def _complete(self, pair: SynchronizedFrame) -> None:
        if pair.stamp_ns < self._pair_ns:
            self.dropped += len(self._pairs)
            self._pairs.clear()
            if self._attitudes and self._attitudes[-1][0] > pair.stamp_ns:  # else the attitudes have restarted already
                self._attitudes.clear()
        self._pair_ns = pair.stamp_ns
        self._paired_s = pair.completed_s
        self.dropped += len(self._pairs) == self._pairs.maxlen
        self._pairs.append(pair)

    def _match(self, others: dict[int, Any], stamp_ns: int) -> int | None:
        """Return the stamp of the other side's image that makes a pair, or None."""
        nearest_ns = min(others, key=lambda other_ns: abs(other_ns - stamp_ns), default=None)
        return None if nearest_ns is None or abs(nearest_ns - stamp_ns) > self._tolerance_ns else nearest_ns

    def _keep_unpaired(self, unpaired: dict[int, Any], stamp_ns: int, image: Any) -> None:
        unpaired[stamp_ns] = image
        while len(unpaired) > _UNPAIRED_KEPT:
            del unpaired[next(iter(unpaired))]
            self.unmatched += 1

    def _attitude_for(self, pair: SynchronizedFrame, now_s: float, max_age_s: float) -> Any:
        """Return the attitude nearest to a pair, once a later one can't be nearer, or after the timeout."""
        if not self._attitudes:
            return None
        newest_ns, newest = self._attitudes[-1]
        if newest_ns == pair.stamp_ns:
            return newest
        is_passed = newest_ns >= pair.stamp_ns
        if not is_passed and now_s - pair.completed_s < ATTITUDE_TIMEOUT_S:
            return None
        away_ns, attitude = min(
            ((abs(stamp_ns - pair.stamp_ns), attitude) for stamp_ns, attitude in self._attitudes), key=lambda it: it[0]
        )
        return attitude if away_ns <= max_age_s * NANOSECONDS else None
