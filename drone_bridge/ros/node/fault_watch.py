# SPDX-License-Identifier: Apache-2.0
"""FaultWatch: saves the last minute of the wire after a fault, and on request. See docs/bags.md."""

from collections.abc import Callable

from rclpy.node import Node
from std_srvs.srv import Trigger

from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.wire_log import WireLog
from drone_bridge.ros.hold.hold import Hold
from drone_bridge.ros.node.link_report import LinkReport
from drone_bridge.ros.node.stall_watch import PROCESS
from drone_bridge.session.obstacles import Obstacle
from drone_bridge.wire.counters import Counter, FaultCounter

#: Conditions whose beginning is a fault.
FAULTS = Obstacle.DOUBT.key, Obstacle.NO_PACKET.key


class FaultWatch:
    """Watch of one node: its hold, FaultCounters and FAULTS, and stalls of its process. Serves `~/save_wire`."""

    def __init__(self, node: Node, report: LinkReport, hold: Hold, log: Callable[[], WireLog | None]) -> None:
        self._report, self._hold, self._log, self._looked_s = report, hold, log, elapsed_s()
        self._found: dict[str, object] = {}
        node.create_service(Trigger, "~/save_wire", self._serve)

    def look(self) -> None:
        """Save the wire after a new fault. Call this once per second, in the thread of the reports."""
        report, before = self._report, self._found
        faults = [name for name, each in Counter.declared.copy().items() if isinstance(each, FaultCounter)]
        self._found = {name: report.counts.get(name) for name in faults}
        self._found |= {name: name in report.conditions for name in FAULTS}
        self._found |= {"hold": self._hold.state.now[0], "stall": PROCESS.stalled_since(self._looked_s)}
        self._looked_s = elapsed_s()
        for name, found in self._found.items():
            if found and found != before.get(name):
                self._save(f"{name}: {found}" if isinstance(found, str) else name.replace("_", " "))

    def _save(self, reason: str) -> str:
        return ((log := self._log()) and log.save(reason)) or ""

    def _serve(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        done = self._save("requested")
        response.success, response.message = bool(done), done or "Nothing was sent or received since the last time."
        return response
