# SPDX-License-Identifier: Apache-2.0
"""The age of a stamped command whose stamp may come from a clock that differs from ours.

When a command arrives, its apparent age, arrival minus stamp, is its true age plus the difference between the clocks.
True ages are never negative, and close to zero for commands that were not queued. So the minimum apparent age in a
steady stream is the difference, and anything beyond it is how long a command has waited.

A constant delay from the first command on can't be distinguished from a clock difference. A delay that sets in later,
or that shrinks, as in a draining queue, can.
"""

from collections import deque
from enum import Enum
from typing import Final

#: How far synchronized clocks may differ, s: a stamp that far ahead of our time counts as current.
TOLERANCE_S: Final = 0.1
#: A larger jump means that our own clock was set, s; a smaller one, that it was read late.
STEP_S: Final = 0.5
#: How fast unsynchronized clocks drift apart: 100 ppm, as cheap quartz oscillators do.
DRIFT: Final = 1e-4

# What a stream has to be like for a difference to be learned from it.
PERIOD_S: Final = 0.5
PERIODS: Final = 6
COMMANDS_IN_PERIOD: Final = 2
LONGEST_PAUSE_S: Final = 1.0
#: By how much the minimum apparent ages of those periods may differ: in a draining queue they fall.
GREATEST_TREND_S: Final = 0.05
#: By how much they fall at least within LONGEST_PAUSE_S while it drains.
STILL_FALLING_S: Final = 0.01


class Judgement(Enum):
    """Whether a command may be followed, and if not, why."""

    FRESH = "it may be followed"
    STALE = "it is too old"
    AHEAD = "its clock is ahead of ours by an amount not known yet"
    QUEUED = "earlier ones were too old: it seems to come from a draining queue"
    DELAYED = (
        "it comes as steadily as it was given, but later than those before: it waits somewhere, or a clock was set"
    )


class ClockDifference:
    """The offset of our clock from the one that stamps the commands of a topic, s.

    It is 0 until something else is learned from a steady stream of commands, all of which are refused meanwhile. It
    falls whenever a command proves that it is smaller. Apart from drift it rises only before the first command is
    followed: a later delay must not be mistaken for a clock difference. When our own clock is set, everything starts
    over.
    """

    def __init__(self, may_learn: bool = True) -> None:
        """If it may not learn, the clocks are assumed to agree."""
        self._may_learn = may_learn
        self.forget()

    def forget(self) -> None:
        """Start over, as commands now come from another publisher."""
        self.difference_s = 0.0
        #: Whether it was learned: only then do the clocks differ by more than they may.
        self.is_learned = False
        self._was_followed = False
        self._before_s: float | None = None
        self._our_clock_s: float | None = None  # ahead of the one that nobody sets
        self._apparent_before_s: float | None = None
        self._is_emptying = False
        self._lowest_s = self._fell_s = 0.0  # the least apparent age while it empties, and when it has last fallen
        self._begin_stream()

    def age_s(self, apparent_s: float) -> float:
        """Return the minimum age of a command."""
        return apparent_s - self.difference_s

    def judge(self, stamp_s: float, apparent_s: float, now_s: float, allowed_s: float) -> Judgement:
        """Judge a command that has just arrived, and learn from it.

        Args:
            stamp_s: its stamp, by the sender's clock.
            apparent_s: its age by our clock, below 0 if that is behind.
            now_s: the time of a clock that is never set.
            allowed_s: how old it may be.
        """
        if not self._may_learn:
            return Judgement.FRESH if apparent_s <= allowed_s else Judgement.STALE
        self._notice_step(stamp_s + apparent_s - now_s)
        self._drift(now_s)
        self._follow_stream(stamp_s, apparent_s, now_s, allowed_s)
        if (least_s := self._least_of_steady_stream()) is not None:
            if least_s < self.difference_s - TOLERANCE_S or (
                least_s > self.difference_s + allowed_s and not self._was_followed
            ):
                self.difference_s, self.is_learned = least_s, True
            elif least_s > self.difference_s + allowed_s:
                return Judgement.DELAYED
        age_s = self.age_s(apparent_s)
        self._notice_queue(apparent_s, now_s, is_stale=age_s > allowed_s, is_steady=least_s is not None)
        if age_s > allowed_s:
            return Judgement.STALE
        if age_s < -TOLERANCE_S:
            return Judgement.AHEAD
        if self._is_emptying and not self._was_followed:
            return Judgement.QUEUED
        self.difference_s = min(self.difference_s, apparent_s)
        self._was_followed = True
        return Judgement.FRESH

    def _notice_step(self, our_clock_s: float) -> None:
        if self._our_clock_s is not None and abs(our_clock_s - self._our_clock_s) > STEP_S:
            self.forget()
        self._our_clock_s = our_clock_s

    def _drift(self, now_s: float) -> None:
        if self.is_learned and self._before_s is not None:
            self.difference_s += DRIFT * (now_s - self._before_s)
        self._before_s = now_s

    def _notice_queue(self, apparent_s: float, now_s: float, is_stale: bool, is_steady: bool) -> None:
        """Detect commands from a draining queue: too old at first, then increasingly fresh.

        With a clock ahead of ours they would seem fresh for a moment. Two senders whose clocks disagree are not a
        queue.
        """
        has_risen = self._apparent_before_s is not None and apparent_s > self._apparent_before_s + TOLERANCE_S
        self._apparent_before_s = apparent_s
        if is_stale and not self._is_emptying and not has_risen:
            self._is_emptying, self._lowest_s, self._fell_s = True, apparent_s, now_s
        elif apparent_s < self._lowest_s - STILL_FALLING_S:
            self._lowest_s, self._fell_s = apparent_s, now_s
        if is_steady or has_risen or now_s - self._fell_s > LONGEST_PAUSE_S:
            self._is_emptying = False

    # The stream: for how long commands have been arriving as they were given.

    def _begin_stream(self) -> None:
        self._least: deque[float] = deque(maxlen=PERIODS)  # apparent ages of the last complete periods
        self._newest_stamp_s: float | None = None
        self._arrived_s = 0.0
        self._begin_period(0.0)

    def _begin_period(self, now_s: float) -> None:
        self._period_began_s = now_s
        self._count = 0
        self._least_now_s = float("inf")

    def _follow_stream(self, stamp_s: float, apparent_s: float, now_s: float, allowed_s: float) -> None:
        goes_on = (
            self._newest_stamp_s is not None
            and stamp_s > self._newest_stamp_s  # a repeated one adds nothing
            and now_s - self._arrived_s <= LONGEST_PAUSE_S
            and all(abs(apparent_s - least_s) <= allowed_s for least_s in self._least)
        )
        if not goes_on:
            self._begin_stream()
            self._begin_period(now_s)
        self._newest_stamp_s, self._arrived_s = stamp_s, now_s
        if now_s - self._period_began_s >= PERIOD_S:
            if self._count < COMMANDS_IN_PERIOD:
                self._least.clear()
            else:
                self._least.append(self._least_now_s)
            self._begin_period(now_s)
        self._count += 1
        self._least_now_s = min(self._least_now_s, apparent_s)

    def _least_of_steady_stream(self) -> float | None:
        """Return the least apparent age, if commands have arrived steadily for long enough."""
        if len(self._least) < PERIODS or max(self._least) - min(self._least) > GREATEST_TREND_S:
            return None
        return min(*self._least, self._least_now_s)
