# SPDX-License-Identifier: Apache-2.0
"""DoubtReports: implausible measurements of a vehicle, and its drift, in log and diagnostics."""

from collections.abc import Callable, Sequence

from drone_bridge.ros.node.protocol_node import ProtocolNode

# Conditions in diagnostics.
DOUBT, DRIFT = "doubt", "drift"
ADVICE = "it flies gently without them until they agree with its motion, and limits act as without odometry"


class DoubtReports:
    """Report, once per second, of the reasons why a vehicle's measurements are not used."""

    def __init__(
        self,
        node: ProtocolNode,
        doubts: Callable[[], Sequence[str]],
        is_drifting: Callable[[], bool] = lambda: False,
        *,
        advice: str = ADVICE,
    ) -> None:
        """Start reporting.

        Args:
            node: the vehicle's node.
            doubts: returns the reasons for doubts, as sentences without a full stop.
            is_drifting: returns whether commands have stopped and the vehicle can't hold its position.
            advice: what a doubt causes.
        """
        self._node, self._doubts, self._is_drifting, self._advice = node, doubts, is_drifting, advice
        node.each_second(self._report)

    def _report(self) -> None:
        update = self._node.report.update_condition
        update(DOUBT, "; ".join(self._doubts()), self._advice)
        drifts = "Commands have stopped. This drone drifts" if self._is_drifting() else None
        update(DRIFT, drifts, "it holds its position once it reports a plausible velocity")
