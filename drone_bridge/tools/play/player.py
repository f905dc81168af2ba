# SPDX-License-Identifier: Apache-2.0
"""Player: publishes the messages of a bag when they are due.

It reads and plays in the thread that calls `play`. Other threads pause it, jump, and read its position. One condition
protects the shared state, and wakes the player. Its Timeline is paused or running. A jump is only recorded, and the
player executes it before its next message. `stop` needs no lock, since signal handlers call it.
"""

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from rosgraph_msgs.msg import Clock

from drone_bridge.tools.bags.bag import LONGEST_GAP_S, NANOSECONDS_PER_SECOND, BagMessage, BagReader, BagTopic

#: Polling period of `stop`, which can't wake the player from a signal handler.
_LONGEST_WAIT_S = 0.05
_MAX_LATCHED = 1000  # messages of a topic that are republished after a jump


class Publisher(Protocol):
    """Protocol of a publisher."""

    def publish(self, message: Any) -> None:
        """Publish a message, or its CDR."""


@dataclass(frozen=True, slots=True)
class Span:
    """Time span to play: from `start_ns` until before `stop_ns`, in times of the bag."""

    start_ns: int
    stop_ns: int

    @property
    def seconds(self) -> float:
        """Duration of the span, s."""
        return (self.stop_ns - self.start_ns) / NANOSECONDS_PER_SECOND


@dataclass(slots=True)
class Timeline:
    """Mapping between times of a bag (ns) and of a steady clock (s), with a rate, pauses and jumps.

    It reads no clock itself, and starts paused at `position_ns`.
    """

    position_ns: int
    """Position while paused, or when it last started to run."""
    rate: float = 1.0
    """Seconds of the bag per second."""
    _running_since_s: float | None = None

    @property
    def is_paused(self) -> bool:
        return self._running_since_s is None

    def now_ns(self, now_s: float) -> int:
        if self._running_since_s is None:
            return self.position_ns
        return self.position_ns + round((now_s - self._running_since_s) * self.rate * NANOSECONDS_PER_SECOND)

    def wait_s(self, time_ns: int, now_s: float) -> float:
        """Return the time until a time of the bag is due, s: negative if overdue, infinite while paused."""
        if self._running_since_s is None:
            return float("inf")
        return self._running_since_s + (time_ns - self.position_ns) / NANOSECONDS_PER_SECOND / self.rate - now_s

    def run(self, now_s: float) -> None:
        """Resume at the current position."""
        if self._running_since_s is None:
            self._running_since_s = now_s

    def pause(self, now_s: float) -> None:
        self.position_ns, self._running_since_s = self.now_ns(now_s), None

    def set_rate(self, rate: float, now_s: float) -> None:
        """Change the rate."""
        self.jump(self.now_ns(now_s), now_s)
        self.rate = rate

    def jump(self, position_ns: int, now_s: float) -> None:
        """Jump to a position, without a change between running and paused."""
        self.position_ns = position_ns
        if self._running_since_s is not None:
            self._running_since_s = now_s


class Player:
    """Player in the thread that calls `play`. All other methods are thread-safe."""

    def __init__(
        self,
        bag: BagReader,
        publishers: Mapping[BagTopic, Publisher],
        latched: Collection[BagTopic],
        span: Span,
        *,
        rate: float,
        clock: tuple[Publisher, float] | None = None,
        on_jump: Callable[[int], None] = lambda position_ns: None,
        on_gap: Callable[[float, float], None] = lambda position_s, gap_s: None,
    ) -> None:
        """Prepare to play.

        Args:
            bag: open bag.
            publishers: publishers of the topics to play.
            latched: topics whose last messages are republished after a jump.
            span: time span to play.
            rate: seconds of the bag per second.
            clock: publisher of the bag's time, and its rate per second.
            on_jump: called with the new position after a jump, and at the beginning, before the first message.
            on_gap: called with position in the span and length, s, of a skipped gap. Gaps are skipped if they are
                longer than LONGEST_GAP_S, both in the bag and in playback.
        """
        self._bag = bag
        self._publishers = publishers
        self._latched = [topic for topic in publishers if topic in latched]
        self._span = span
        self._clock = clock[0] if clock else None
        self._clock_period_s = 1 / clock[1] if clock else 0.0
        self._clock_due_s = 0.0
        self._on_jump, self._on_gap = on_jump, on_gap
        self._timeline = Timeline(span.start_ns, rate)
        self._changed = threading.Condition()
        self._jump_to_ns: int | None = span.start_ns
        self._is_stopped = False

    # Called by other threads.

    def stop(self) -> None:
        """End `play` and `wait`. Needs no lock, so that signal handlers may call it."""
        self._is_stopped = True

    def control(self, *, is_paused: bool, rate: float, position_ns: int | None = None) -> None:
        """Pause or resume, at a rate, and optionally at another position."""
        with self._changed:
            now_s = time.monotonic()
            self._timeline.set_rate(rate, now_s)
            (self._timeline.pause if is_paused else self._timeline.run)(now_s)
            if position_ns is not None:
                self._jump_to_ns = min(max(position_ns, self._span.start_ns), self._span.stop_ns)
            self._changed.notify_all()

    @property
    def rate(self) -> float:
        """Seconds of the bag per second."""
        return self._timeline.rate

    @property
    def position_ns(self) -> int:
        """Current position, as a time of the bag, ns."""
        with self._changed:
            return self._position_ns()

    @property
    def position_s(self) -> float:
        """Current position from the beginning of the span, s."""
        with self._changed:
            return (self._position_ns() - self._span.start_ns) / NANOSECONDS_PER_SECOND

    @property
    def is_paused(self) -> bool:
        return self._timeline.is_paused

    # Called by the playing thread.

    def wait(self, seconds: float) -> bool:
        """Wait before playing. Return False as soon as the player is stopped."""
        until_s = time.monotonic() + seconds
        while not self._is_stopped and (left_s := until_s - time.monotonic()) > 0:
            time.sleep(min(left_s, _LONGEST_WAIT_S))
        return not self._is_stopped

    def play_on_request(self) -> None:
        """Play until stopped. After the end, wait for a jump or a resume. Raises BagReadError."""
        self._timeline.run(time.monotonic())
        while not self._is_stopped:
            self._play()
            with self._changed:
                if not self._is_stopped and self._jump_to_ns is None:
                    self._timeline.pause(time.monotonic())
                    self._timeline.jump(self._span.stop_ns, time.monotonic())
                while not self._is_stopped and self._jump_to_ns is None:
                    self._changed.wait(_LONGEST_WAIT_S)
                    if not self._timeline.is_paused:  # a resume at the end plays from the beginning
                        self._jump_to_ns = self._jump_to_ns or self._span.start_ns

    def play(self) -> None:
        """Play to the end, until stopped. Raises BagReadError."""
        self._timeline.run(time.monotonic())
        self._play()

    def _play(self) -> None:
        while not self._is_stopped:
            with self._changed:
                position_ns, self._jump_to_ns = self._jump_to_ns, None
                if position_ns is None:
                    return
                self._timeline.jump(position_ns, time.monotonic())
            self._on_jump(position_ns)
            self._repeat_latched(position_ns)
            messages = self._bag.messages(self._publishers.keys(), position_ns, self._span.stop_ns)
            self._play_from(messages)

    def _play_from(self, messages: Iterable[BagMessage]) -> None:
        """Publish messages until their end, a jump or a stop. Each is read after the previous one was published."""
        for message in messages:
            if not self._wait_until_due(message.time_ns):
                return
            with contextlib.suppress(Exception) if self._is_stopped else contextlib.nullcontext():
                self._publishers[message.topic].publish(message.data)
        self._wait_until_due(self._span.stop_ns)

    def _wait_until_due(self, time_ns: int) -> bool:
        """Wait until a time of the bag is due. Return False on a jump or a stop."""
        with self._changed:
            while True:
                if self._is_stopped or self._jump_to_ns is not None:
                    return False
                now_s = time.monotonic()
                self._publish_clock(now_s)
                self._leave_out_gap(time_ns, now_s)
                wait_s = self._timeline.wait_s(time_ns, now_s)
                if wait_s <= 0:
                    return True
                longest_s = self._clock_due_s - now_s if self._clock else _LONGEST_WAIT_S
                self._changed.wait(max(0.0, min(wait_s, longest_s, _LONGEST_WAIT_S)))

    def _leave_out_gap(self, time_ns: int, now_s: float) -> None:
        """Skip to a time of the bag if it is far away."""
        gap_s = (time_ns - self._timeline.now_ns(now_s)) / NANOSECONDS_PER_SECOND
        if gap_s > LONGEST_GAP_S * max(1.0, self._timeline.rate) and not self._timeline.is_paused:
            self._on_gap(self.position_s, gap_s)
            self._timeline.jump(time_ns, now_s)

    def _publish_clock(self, now_s: float) -> None:
        if self._clock and now_s >= self._clock_due_s:
            self._clock_due_s = max(self._clock_due_s + self._clock_period_s, now_s)
            message = Clock()
            message.clock.sec, message.clock.nanosec = divmod(self._timeline.now_ns(now_s), NANOSECONDS_PER_SECOND)
            self._clock.publish(message)

    def _repeat_latched(self, position_ns: int) -> None:
        """Republish the latched messages that a late subscriber would have received at this position."""
        if not self._latched or position_ns <= self._bag.start_ns:
            return
        held: dict[BagTopic, deque[BagMessage]] = {topic: deque(maxlen=_MAX_LATCHED) for topic in self._latched}
        for message in self._bag.messages(self._latched, None, position_ns):
            held[message.topic].append(message)
        for topic, messages in held.items():
            for message in messages:
                self._publishers[topic].publish(message.data)

    def _position_ns(self) -> int:
        position_ns = self._jump_to_ns if self._jump_to_ns is not None else self._timeline.now_ns(time.monotonic())
        return min(max(position_ns, self._span.start_ns), self._span.stop_ns)
