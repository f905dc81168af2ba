# SPDX-License-Identifier: Apache-2.0
"""DoubtReports: which of a vehicle's reports can't be right, and that it drifts, in log and diagnostics."""

from collections.abc import Callable, Sequence

from drone_bridge.ros.protocol_node import ProtocolNode

# Conditions in diagnostics.
DOUBT, DRIFT = "doubt", "drift"


class DoubtReports:
    """Reports once per second why a vehicle is not flown by its measurements."""

    def __init__(
        self,
        node: ProtocolNode,
        doubts: Callable[[], Sequence[str]],
        is_drifting: Callable[[], bool] = lambda: False,
    ) -> None:
        """Begin to report.

        Args:
            node: of the vehicle.
            doubts: returns why measurements are doubted, as sentences without full stop.
            is_drifting: returns whether commands have stopped, and the vehicle can't hold its place.
        """
        self._node, self._doubts, self._is_drifting = node, doubts, is_drifting
        node.each_second(self._report)

    def _report(self) -> None:
        update = self._node.report.update_condition
        update(
            DOUBT,
            "; ".join(self._doubts()),
            "it is flown gently, without them, and limits count as without odometry, until they agree with its motion",
        )
        drifts = "Commands have stopped. This drone drifts" if self._is_drifting() else None
        update(DRIFT, drifts, "it holds its place once it reports a velocity that can be right")
