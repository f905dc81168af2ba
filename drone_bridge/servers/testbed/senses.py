# SPDX-License-Identifier: Apache-2.0
"""What belongs together of all that a drone senses: images of a pair by their stamps, and the attitude with them."""

import math
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from builtin_interfaces.msg import Time
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Image, Imu

from drone_bridge.translate.testbed import SIDES
from drone_bridge.translate.time import NANOSECONDS

#: How long a pair waits for an attitude that is at least as new, before the newest one has to do.
ATTITUDE_PATIENCE_S: Final = 0.1
#: Attitudes that are kept to find the nearest one among, and images whose other side has not come.
_ATTITUDES_KEPT: Final = 200
_SINGLES_KEPT: Final = 8


@dataclass(frozen=True, slots=True)
class Sensed:
    """A pair of images and the attitude, or pose, that was sensed nearest to them."""

    stamp: Time  # of the images
    left: Image
    right: Image
    attitude: Imu | Odometry
    came_s: float  # when the pair was complete, by time.monotonic

    @property
    def stamp_s(self) -> float:
        """The stamp in s."""
        return _nanoseconds(self.stamp) / NANOSECONDS


@dataclass(frozen=True, slots=True)
class _Pair:
    stamp_ns: int
    left: Image
    right: Image
    came_s: float


class Senses:
    """Takes messages in the executor, gives what is complete to the link's thread. Times are passed in.

    What comes while nothing is taken is dropped and counted: all but the newest, or when it `keeps_order` what exceeds
    `depth`, the oldest first. When time runs back, a new simulation has begun, and what came before is forgotten.
    """

    def __init__(self, depth: int, *, keeps_order: bool, is_mono: bool, on_news: Callable[[], None]) -> None:
        """Prepare to take messages.

        Args:
            depth: how many pairs are kept.
            keeps_order: whether pairs are given in order, or the newest first.
            is_mono: whether the left image is the right one as well.
            on_news: called when there may be more to take; but not when an attitude has been waited for in vain, for
                which one has to look every ATTITUDE_PATIENCE_S.
        """
        self._lock = threading.Lock()
        self._keeps_order = keeps_order
        self._is_mono = is_mono
        self._on_news = on_news
        self._singles: dict[str, dict[int, Image]] = {side: {} for side in SIDES}
        self._pairs: deque[_Pair] = deque(maxlen=depth)
        self._attitudes: deque[tuple[int, Imu | Odometry]] = deque(maxlen=_ATTITUDES_KEPT)
        self._newest_ns = 0
        self._paired_s = -math.inf  # when a pair was complete last
        self._seen_s: dict[str, float] = {}  # when each kind of message came last
        #: Pairs that nobody took, and images whose other side never came.
        self.dropped = 0
        self.unmatched = 0

    def saw(self, side: str, image: Image, now_s: float) -> None:
        """Take an image of one side."""
        stamp_ns = _nanoseconds(image.header.stamp)
        with self._lock:
            self._seen_s[side] = now_s
            if self._is_mono:
                self._complete(_Pair(stamp_ns, image, image, now_s))
            else:
                other = self._singles["right" if side == "left" else "left"].pop(stamp_ns, None)
                if other is None:
                    self._keep_single(self._singles[side], stamp_ns, image)
                    return
                left, right = (image, other) if side == "left" else (other, image)
                self._complete(_Pair(stamp_ns, left, right, now_s))
            is_whole = bool(self._attitudes) and self._attitudes[-1][0] >= stamp_ns
        if is_whole:  # else the attitude brings the news
            self._on_news()

    def felt(self, attitude: Imu | Odometry, now_s: float) -> None:
        """Take an attitude."""
        stamp_ns = _nanoseconds(attitude.header.stamp)
        with self._lock:
            self._seen_s["attitude"] = now_s
            if self._attitudes and stamp_ns < self._attitudes[-1][0]:
                self._attitudes.clear()
            self._attitudes.append((stamp_ns, attitude))
            has_waiting = bool(self._pairs)
        if has_waiting:
            self._on_news()

    def take(self, now_s: float, longest_s: float) -> Sensed | None:
        """Return the newest, or the next in order, of what is complete and came within the last `longest_s`."""
        with self._lock:
            while self._pairs and now_s - self._pairs[0].came_s > longest_s:
                self._pairs.popleft()
                self.dropped += 1
            candidates = list(self._pairs) if self._keeps_order else list(reversed(self._pairs))
            for pair in candidates:
                attitude = self._attitude_for(pair, now_s, longest_s)
                if attitude is not None:
                    break
                if self._keeps_order:
                    return None
            else:
                return None
            while self._pairs.popleft() is not pair:
                self.dropped += 1
        return Sensed(pair.left.header.stamp, pair.left, pair.right, attitude, pair.came_s)

    @property
    def newest_stamp(self) -> Time:
        """The stamp of the newest pair, taken or not."""
        return Time(sec=self._newest_ns // NANOSECONDS, nanosec=self._newest_ns % NANOSECONDS)

    def missing(self, now_s: float, longest_s: float) -> str:
        """Return in words what has not come within the last `longest_s`; empty when everything has."""
        with self._lock:
            seen_s = dict(self._seen_s)
        kinds = (*SIDES[: 1 if self._is_mono else 2], "attitude")
        return " and ".join(kind for kind in kinds if now_s - seen_s.get(kind, -math.inf) > longest_s)

    def mismatch(self, now_s: float, longest_s: float) -> str:
        """Return in words why what has come within the last `longest_s` makes no frame; empty if stamps are not why."""
        with self._lock:
            if now_s - self._paired_s > longest_s:
                return "no two images of left and right have the same stamp"
            if self._pairs:
                return f"the stamps of the images are more than {longest_s:g} s away from those of the attitude"
        return ""

    def _complete(self, pair: _Pair) -> None:
        if pair.stamp_ns < self._newest_ns:
            self.dropped += len(self._pairs)
            self._pairs.clear()
            if self._attitudes and self._attitudes[-1][0] > pair.stamp_ns:  # else they have run back already
                self._attitudes.clear()
        self._newest_ns = pair.stamp_ns
        self._paired_s = pair.came_s
        self.dropped += len(self._pairs) == self._pairs.maxlen
        self._pairs.append(pair)

    def _keep_single(self, singles: dict[int, Image], stamp_ns: int, image: Image) -> None:
        singles[stamp_ns] = image
        while len(singles) > _SINGLES_KEPT:
            del singles[next(iter(singles))]
            self.unmatched += 1

    def _attitude_for(self, pair: _Pair, now_s: float, longest_s: float) -> Imu | Odometry | None:
        """Return the attitude nearest to a pair, once a newer one can't be nearer or has been waited for."""
        if not self._attitudes:
            return None
        is_passed = self._attitudes[-1][0] >= pair.stamp_ns
        if not is_passed and now_s - pair.came_s < ATTITUDE_PATIENCE_S:
            return None
        away_ns, attitude = min(
            ((abs(stamp_ns - pair.stamp_ns), attitude) for stamp_ns, attitude in self._attitudes), key=lambda it: it[0]
        )
        return attitude if away_ns <= longest_s * NANOSECONDS else None


def _nanoseconds(stamp: Time) -> int:
    return int(stamp.sec) * NANOSECONDS + int(stamp.nanosec)
