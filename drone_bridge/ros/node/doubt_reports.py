# SPDX-License-Identifier: Apache-2.0
"""report_doubts: implausible measurements of a vehicle, and its drift, in log and diagnostics."""

from collections.abc import Callable, Sequence

from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.session.obstacles import Obstacle

FLIES_GENTLY = "it flies gently without them until they agree with its motion, and limits act as without odometry"


def report_doubts(
    node: ProtocolNode,
    doubts: Callable[[], Sequence[str]],
    is_drifting: Callable[[], bool] = lambda: False,
    *,
    advice: str = FLIES_GENTLY,
) -> None:
    """Report, once per second, of the reasons why a vehicle's measurements are not used.

    Args:
        node: the vehicle's node.
        doubts: returns the reasons for doubts, as sentences without a full stop.
        is_drifting: returns whether commands have stopped and the vehicle can't hold its position.
        advice: what a doubt causes.
    """

    def report() -> None:
        found = "; ".join(doubts())
        node.report.update_obstacle(Obstacle.DOUBT, {"doubts": found, "advice": advice} if found else None)
        node.report.update_obstacle(Obstacle.DRIFT, {} if is_drifting() else None)

    node.each_second(report)
