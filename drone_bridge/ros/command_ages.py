# SPDX-License-Identifier: Apache-2.0
"""Decides which stamped commands are fresh, and reports clock differences. See docs/network.md."""

import time
from collections.abc import Callable
from typing import Final, Protocol

from builtin_interfaces.msg import Time
from rclpy.node import Node

from drone_bridge.ros.clock_difference import PERIOD_S, PERIODS, TOLERANCE_S, ClockDifference, Judgement
from drone_bridge.ros.parameters import DeclaredParameters, ParameterDeclaration
from drone_bridge.ros.time import is_time_simulated, seconds_between, seconds_of

_LEARNING_S: Final = PERIOD_S * PERIODS
_ADVICE: Final = "commands are judged by their delay beyond that; synchronize the clocks, for instance with chrony"


def clock_difference_parameter(prefix: str = "") -> ParameterDeclaration:
    """Return the parameter that says whether differences between clocks are learned."""
    return ParameterDeclaration(
        f"{prefix}clock_difference",
        "learn",
        f"For commands stamped by another machine's clock: learn its offset from {_LEARNING_S:g} s of steady commands, "
        "or refuse commands that are too old by this machine's clock.",
        choices=("learn", "refuse"),
    )


class UpdateCondition(Protocol):
    """Reports a problem under a name while there is one, and what to do about it in the log."""

    def __call__(self, condition: str, problem: str | None, advice: str) -> None:
        """Neither the problem nor the advice has a full stop."""


class CommandAges:
    """Judges the commands of one topic by their stamps and arrival times.

    How old they may be is the parameter `command_timeout`.
    """

    def __init__(
        self,
        node: Node,
        topic: str,
        parameters: DeclaredParameters,
        update_condition: UpdateCondition,
        *,
        now: Callable[[], Time] | None = None,
        prefix: str = "",
    ) -> None:
        """Prepare to judge commands.

        Args:
            node: which has subscribed to the topic.
            topic: of the commands.
            parameters: the node's, `command_timeout` and `clock_difference` among them.
            update_condition: reports that clocks differ, for as long as they do.
            now: the clock of the stamps if it is not the node's; all publishers then get it from the vehicle.
            prefix: of those parameters' names.
        """
        self._node = node
        self._topic = topic
        self._parameters = parameters
        self._update_condition = update_condition
        self._timeout_name = f"{prefix}command_timeout"
        self._now = now or (lambda: node.get_clock().now().to_msg())
        #: Whether stamps come from the clock of a machine, and not from one that all share.
        self._are_by_machines = now is None and not is_time_simulated(node)
        self._clock = ClockDifference(may_learn=parameters[f"{prefix}clock_difference"] == "learn")
        self._publishers: frozenset[tuple[int, ...]] = frozenset()  # of the commands that were followed
        self._reported_difference_s = 0.0

    def refusal(self, stamp: Time) -> str | None:
        """Return why a command that has just arrived is refused, or None."""
        allowed_s = self._parameters[self._timeout_name]
        if not self._are_by_machines or stamp == Time():
            age_s = seconds_between(self._now(), stamp)
            if age_s <= allowed_s:
                return None
            if stamp == Time():
                return "its header has no stamp, and commands must be stamped."
            return self._too_old(age_s, allowed_s)
        judgement = self._judge(stamp, allowed_s)
        if judgement is not Judgement.FRESH and self._has_another_publisher():
            self._clock.forget()
            judgement = self._judge(stamp, allowed_s)
        if judgement is Judgement.FRESH and not self._publishers:
            self._publishers = self._present_publishers()
        self._report_difference()
        return self._sentence(judgement, allowed_s)

    def _judge(self, stamp: Time, allowed_s: float) -> Judgement:
        stamp_s = seconds_of(stamp)
        self._apparent_s = time.time() - stamp_s
        return self._clock.judge(stamp_s, self._apparent_s, time.monotonic(), allowed_s)

    def _sentence(self, judgement: Judgement, allowed_s: float) -> str | None:
        age_s = self._clock.age_s(self._apparent_s)
        if judgement is Judgement.STALE:
            return self._too_old(age_s, allowed_s)
        if judgement is Judgement.AHEAD:
            return (
                f"it is stamped {-age_s:.3f} s ahead of this machine's clock, and how old it is can't be known before "
                f"commands have come steadily for {_LEARNING_S:g} s."
            )
        if judgement is Judgement.QUEUED:
            return "earlier ones were too old and are getting fresher: they were queued."
        if judgement is Judgement.DELAYED:
            return (
                f"it is {age_s:.3f} s older than those before were, as is every one now: they wait somewhere, or a "
                f"clock was set. If it was, start what publishes {self._topic} again."
            )
        return None

    def _too_old(self, age_s: float, allowed_s: float) -> str:
        return f"it is {age_s:.3f} s old, and {allowed_s:g} s ({self._timeout_name}) are allowed."

    def _report_difference(self) -> None:
        """Report a clock difference in the log when it is learned, and in diagnostics while it holds."""
        difference_s = self._clock.difference_s if self._clock.is_learned else 0.0
        if abs(difference_s - self._reported_difference_s) <= TOLERANCE_S:
            return
        self._reported_difference_s = difference_s
        problem = (
            f"{self._topic} is stamped by a clock {abs(difference_s):.2f} s "
            f"{'behind' if difference_s > 0 else 'ahead of'} this machine's"
        )
        self._update_condition(f"clock of {self._topic}", problem if abs(difference_s) > TOLERANCE_S else None, _ADVICE)

    def _has_another_publisher(self) -> bool:
        """Return whether all publishers of the commands so far are gone, and there is another one."""
        present = self._present_publishers() if self._publishers else frozenset()
        if not present or not present.isdisjoint(self._publishers):
            return False
        self._publishers = frozenset()
        return True

    def _present_publishers(self) -> frozenset[tuple[int, ...]]:
        infos = self._node.get_publishers_info_by_topic(self._node.resolve_topic_name(self._topic))
        return frozenset(tuple(info.endpoint_gid) for info in infos)
