# SPDX-License-Identifier: Apache-2.0
"""CommandAges: age check of stamped commands.

See docs/bridges.md, "Clocks".
"""

import math
from collections.abc import Callable
from typing import Any

from builtin_interfaces.msg import Time

from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.node.simulated_time import is_time_simulated
from drone_bridge.ros.time import seconds_between

#: Tolerance of synchronized clocks, s: a stamp ahead of our time by less counts as current.
CLOCK_TOLERANCE_S = 0.1
REMEDY = "run chrony on both machines"


class CommandAges:
    """Age check that refuses commands of one topic older than the parameter `command_timeout`.

    A command whose stamp is ahead of this machine's clock is refused too, since its age is unknown.
    """

    def __init__(self, node: ProtocolNode, topic: str, now: Callable[[], Time] | None = None) -> None:
        """`now` is the clock of the stamps, if all publishers follow the vehicle's clock; default: the node's."""
        self._node, self._topic = node, topic
        self._now = now or (lambda: node.get_clock().now().to_msg())
        #: Whether stamps come from machine clocks, not from a common clock.
        self._are_by_machines = now is None and not is_time_simulated(node)
        self._has_warned_of_zero = False
        self._age_s = math.inf  # of the last refused command

    def stamp_of(self, message: Any) -> Time | None:
        """Return the stamp of a command. Return None for a zero stamp, which means no stamp, as in ros2_controllers.

        At the beginning of simulated time, zero is a valid stamp.
        """
        stamp: Time = message.header.stamp
        if stamp != Time():
            return stamp
        if seconds_between(self._now(), stamp) <= self._node.parameters["command_timeout"]:
            return stamp
        if not self._has_warned_of_zero:
            self._has_warned_of_zero = True
            self._node.get_logger().warning(
                f"Commands on {self._topic} have a stamp of zero, which means no stamp: their age is measured from "
                "their arrival. This is logged once."
            )
        return None

    def refusal(self, message: Any) -> str | None:
        """Return the reason to refuse a new command, or None."""
        if (stamp := self.stamp_of(message)) is None:
            return None
        allowed_s = self._node.parameters["command_timeout"]
        age_s = seconds_between(self._now(), stamp)
        is_ahead = self._are_by_machines and age_s < -CLOCK_TOLERANCE_S
        if not is_ahead and age_s <= allowed_s:
            return None
        if not abs(age_s - self._age_s) < CLOCK_TOLERANCE_S:  # else it says the same of each command of a stream
            self._age_s = age_s
        if is_ahead:
            return f"it is stamped {-self._age_s:.3f} s ahead of the bridge's clock, so its age is unknown: {REMEDY}."
        late = f"it is {self._age_s:.3f} s old (limit {allowed_s:g} s, command_timeout)"
        return f"{late}: if the clocks differ, {REMEDY}." if self._are_by_machines else f"{late}."
