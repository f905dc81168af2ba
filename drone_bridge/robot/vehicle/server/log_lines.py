# SPDX-License-Identifier: Apache-2.0
"""LogLines: lines of /rosout, forwarded to drivers as the robot's log."""

from collections import deque
from collections.abc import Callable, Sequence

from rcl_interfaces.msg import Log

from drone_bridge.robot.topics import ROBOT_LOG_PREFIX
from drone_bridge.ros.node.log_limiter import LogLimiter
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.wire.printable import printable

ROSOUT = "/rosout"
MAX_WAITING = 64  # lines; on overflow, the oldest ones are dropped
LONGEST_LINE = 1000  # characters
_LEAST_SEVERITY = 20  # INFO
_QUEUE_DEPTH = 100


class LogLines:
    """Subscription to the log of named nodes, with a queue of lines."""

    def __init__(
        self, node: ProtocolNode, names: Sequence[str], wake: Callable[[], None], *, behind_bridge: bool
    ) -> None:
        """Subscribe if there are names, or a bridge.

        Args:
            node: in the namespace of the bridge.
            names: full names of nodes, or of their loggers.
            wake: called after each line. Its owner should call `take`.
            behind_bridge: also forward the robot's own log, as logged by robot_bridge in the same namespace.
        """
        own = node.get_logger().name
        self._namespace = own.rpartition(".")[0]
        self._behind_bridge = behind_bridge
        self._names = {name.strip("/").replace("/", ".") for name in names} - {own}  # without its own, which would loop
        self._wake = wake
        self._waiting: deque[str] = deque(maxlen=MAX_WAITING)
        self._limiter = LogLimiter()
        if self._names or behind_bridge:
            node.make_subscription(Log, ROSOUT, self._on_log, _QUEUE_DEPTH)

    def take(self) -> list[str]:
        """Return the queued lines. For one other thread."""
        lines = []
        while self._waiting:
            lines.append(self._waiting.popleft())
        return lines

    def _on_log(self, message: Log) -> None:
        if not self._is_wanted(message) or _severity(message) < _LEAST_SEVERITY:
            return
        if (line := self._limiter.admit(line_of(message))) is not None:
            self._waiting.append(line)
            self._wake()

    def _is_wanted(self, message: Log) -> bool:
        is_of_robot = self._behind_bridge and message.msg.startswith(ROBOT_LOG_PREFIX)
        return message.name in self._names or (is_of_robot and message.name.rpartition(".")[0] == self._namespace)


def line_of(message: Log) -> str:
    """Return a line for drivers: a robot's log unchanged, a node's preceded by its name."""
    text = printable(message.msg.strip(), LONGEST_LINE)
    return text.removeprefix(ROBOT_LOG_PREFIX) if text.startswith(ROBOT_LOG_PREFIX) else f"[{message.name}] {text}"


def _severity(message: Log) -> int:
    level = message.level
    return level[0] if isinstance(level, bytes) else int(level)  # depends on the distribution
