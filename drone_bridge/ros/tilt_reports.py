# SPDX-License-Identifier: Apache-2.0
"""TiltReports: what a pilot doubts of its drone's reports, and that it drifts, in log and diagnostics."""

from drone_bridge.ros.vehicle_node import VehicleNode
from drone_bridge.session.tilt_pilot import TiltPilot

# Conditions in diagnostics.
DOUBT, DRIFT = "doubt", "drift"


class TiltReports:
    """Reports once per second how a drone is flown without measurements, and why."""

    def __init__(self, node: VehicleNode, pilot: TiltPilot) -> None:
        self._reports, self._pilot = node.reports, pilot
        node.each_second(self._report)

    def _report(self) -> None:
        doubts = "; ".join(self._pilot.doubts)
        self._reports.update_condition(
            DOUBT,
            doubts,
            "it is flown gently by its tilt, and limits count as without odometry, until that agrees again",
        )
        drifts = "Commands have stopped. This drone drifts" if self._pilot.is_drifting else None
        self._reports.update_condition(DRIFT, drifts, "it holds its place once it reports a velocity that can be right")
