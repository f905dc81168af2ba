# SPDX-License-Identifier: Apache-2.0
"""report_doubts: implausible measurements of a vehicle, and its drift, in log and diagnostics."""

from collections.abc import Callable, Sequence

from drone_bridge.ros.node.protocol_node import ProtocolNode

# Conditions in diagnostics.
DOUBT, DRIFT = "doubt", "drift"
ADVICE = "it flies gently without them until they agree with its motion, and limits act as without odometry"


def report_doubts(
    node: ProtocolNode,
    doubts: Callable[[], Sequence[str]],
    is_drifting: Callable[[], bool] = lambda: False,
    *,
    advice: str = ADVICE,
) -> None:
    """Report, once per second, of the reasons why a vehicle's measurements are not used.

    Args:
        node: the vehicle's node.
        doubts: returns the reasons for doubts, as sentences without a full stop.
        is_drifting: returns whether commands have stopped and the vehicle can't hold its position.
        advice: what a doubt causes.
    """

    def report() -> None:
        node.report.update_condition(DOUBT, "; ".join(doubts()), advice)
        drifts = "Commands have stopped. This drone drifts" if is_drifting() else None
        node.report.update_condition(DRIFT, drifts, "it holds its position once it reports a plausible velocity")

    node.each_second(report)
