# SPDX-License-Identifier: Apache-2.0
"""How commands come in from topics: what is stale or no number is refused, the rest waits in a mailbox."""

import math
import time
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Twist, TwistStamped

from drone_bridge.bridges.mailbox import Arrival, Mailbox
from drone_bridge.bridges.node import BridgeNode
from drone_bridge.translate.time import seconds_between

CommandT = TypeVar("CommandT")


class CommandIntake(Generic[CommandT]):
    """Subscribes to the topics that command a vehicle, and keeps the newest command that may be followed."""

    def __init__(
        self,
        node: BridgeNode,
        now: Callable[[], Time] | None = None,
        on_command: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare to take commands.

        Args:
            node: whose topics they come from.
            now: the time that stamps are compared with: the node's clock, unless they are of another time.
            on_command: called in the executor when there is a new command.
        """
        self._node = node
        self._on_command = on_command
        self._now = now or (lambda: node.get_clock().now().to_msg())
        self.mailbox: Mailbox[CommandT] = Mailbox()
        self._followed: Arrival[CommandT] | None = None
        self._overruled_until_s = 0.0

    def newest(self) -> CommandT | None:
        """Return the newest command, if it came within `command_timeout`."""
        arrival = self.newest_arrival()
        return arrival.command if arrival else None

    def newest_arrival(self) -> Arrival[CommandT] | None:
        """Return the newest command and when it came, if that was within `command_timeout`."""
        return self.mailbox.newest(self._node.parameters["command_timeout"])

    def follow(self) -> CommandT | None:
        """Return the newest command, as `newest` does, for it to be sent now; how long it waited is noted once."""
        arrival = self.newest_arrival()
        if arrival is None:
            return None
        if arrival is not self._followed:
            self._followed = arrival
            self._node.statistics.took("command received to sent", time.monotonic() - arrival.arrived_s)
        return arrival.command

    def take_limited_velocities(self, read: Callable[[Twist], tuple[CommandT, bool]]) -> None:
        """Do what `take_velocities` does, where `read` also tells whether the Twist was within the limits."""

        def read_and_count(twist: Twist) -> CommandT:
            command, was_within = read(twist)
            self._node.statistics.counts["clamped commands"] += not was_within
            return command

        self.take_velocities(read_and_count)

    def take_velocities(self, read: Callable[[Twist], CommandT]) -> None:
        """Subscribe to cmd_vel and cmd_vel_stamped; `read` makes a command of a Twist.

        The latter overrules: a person who takes the helm from a controller shall not fight with it.
        """
        self.take("cmd_vel", Twist, read)
        self.take("cmd_vel_stamped", TwistStamped, lambda message: read(message.twist), overrules=True)

    def take(self, topic: str, message_type: type, read: Callable[[Any], CommandT], *, overrules: bool = False) -> None:
        """Subscribe to a topic; a message with a header is refused when it is older than `command_timeout`.

        After one on a topic that `overrules`, those on topics that do not are left aside for `command_timeout`.
        """

        def receive(message: Any) -> None:
            stamp = message.header.stamp if hasattr(message, "header") else None
            if complaint := self._complaint(message, stamp):
                self._node.complain("refused commands", f"A command on {topic} was refused: {complaint}")
                return
            now_s = time.monotonic()
            if overrules:
                self._overruled_until_s = now_s + self._node.parameters["command_timeout"]
            elif now_s < self._overruled_until_s:
                self._node.statistics.counts["overruled commands"] += 1
                return
            self._node.statistics.counts["commands"] += 1
            self._node.undelivered(topic)
            self.mailbox.put(read(message), (stamp.sec, stamp.nanosec) if stamp else None)
            self._on_command()

        self._node.make_subscription(message_type, topic, receive, depth=1)

    def _complaint(self, message: Any, stamp: Time | None) -> str | None:
        for name, value in _floats(message):
            if not math.isfinite(value):
                return f"{name} is {value}, and has to be a finite number."
        if stamp is not None:
            age_s = seconds_between(self._now(), stamp)
            allowed_s = self._node.parameters["command_timeout"]
            if age_s > allowed_s and stamp == Time():
                return "its header has no stamp, and has to say when the command was given."
            if age_s > allowed_s:
                return f"it is {age_s:.3f} s old, and {allowed_s:g} s (command_timeout) are allowed."
        return None


def _floats(message: Any, prefix: str = "") -> Iterable[tuple[str, float]]:
    """Return every float of a message with its name, for instance angular.x."""
    for field in message.get_fields_and_field_types():
        value = getattr(message, field)
        if isinstance(value, float):
            yield f"{prefix}{field}", value
        elif hasattr(value, "get_fields_and_field_types"):
            yield from _floats(value, f"{prefix}{field}.")
