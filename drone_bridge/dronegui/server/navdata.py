# SPDX-License-Identifier: Apache-2.0
"""Navdata for operators: blocks forwarded unchanged from a bridge, or built from other topics."""

import math
import time
from typing import Final

from std_msgs.msg import String

from drone_bridge.dronegui.codec import (
    MAX_DATAGRAM_BYTES,
    NEED_DATA,
    ControllerConnection,
    Demo,
    Navdata,
    VisionDetect,
)
from drone_bridge.dronegui.device import Gui
from drone_bridge.dronegui.server.sources import DroneSources
from drone_bridge.dronegui.topics import controls as translate
from drone_bridge.dronegui.topics import navdata as dronegui_navdata
from drone_bridge.msg import DetectionArray
from drone_bridge.net.connector import LinkError
from drone_bridge.net.udp import UdpListener
from drone_bridge.ros.link_node import LinkNode
from drone_bridge.wire.events import LocalProtocolError, RemoteProtocolError

NAVDATA_TOPIC: Final = "dronegui/navdata"
UNSENT: Final = "unsent navdata"
SILENT_SOURCES: Final = "sources"
#: How often publishers are counted.
PUBLISHER_CHECK_PERIOD_S: Final = 0.1
#: Blocks queued for the executor; a drone sends a few at a time, some 15 times per second.
DEPTH: Final = 50


class NavdataSender:
    """Sends navdata, in the executor, while the node is active."""

    def __init__(self, node: LinkNode) -> None:
        self._node = node
        self._reader = ControllerConnection()
        self._forwarded_s = -math.inf  # when the last demo was
        self._has_publisher = False
        self._checked_s = -math.inf
        self._gui: Gui | None = None
        self._socket: UdpListener | None = None
        self.sources = DroneSources(node, self._send_demo)
        node.make_subscription(DetectionArray, "detections", self._send_detections, 10)
        node.make_subscription(String, NAVDATA_TOPIC, self._forward, DEPTH)

    def open(self, gui: Gui, socket: UdpListener) -> None:
        """Start sending from this socket."""
        self._forwarded_s = -math.inf
        self._gui, self._socket = gui, socket

    def close(self) -> None:
        self._gui = None
        if self._socket:
            self._socket.close()

    @property
    def is_flying(self) -> bool:
        """Whether the drone is in the air according to the newest navdata or a topic."""
        return bool(self.sources.is_flying)

    def report(self) -> None:
        """Report in diagnostics whether there is navdata to send. For the link's thread."""
        has_motion = self._is_forwarding or self.sources.has_motion
        problem = None if has_motion else "no topic gives the drone's motion, so no navdata is sent"
        advice = "expected are imu/data, odom, velocity, altitude, or a bridge's dronegui/navdata"
        self._node.reports.update_condition(SILENT_SOURCES, problem, advice)

    @property
    def _is_forwarding(self) -> bool:
        """Whether a bridge publishes its drone's navdata."""
        return bool(time.monotonic() - self._forwarded_s <= self._node.parameters["source_timeout"])

    def _forward(self, message: String) -> None:
        """Forward a block unchanged."""
        gui = self._gui
        datagram = message.data.encode()[: MAX_DATAGRAM_BYTES + 1]
        self._reader.receive_data(datagram)
        try:
            block = self._reader.next_event()
        except RemoteProtocolError as error:
            self._node.count_and_warn("rejected messages", f"A message on {NAVDATA_TOPIC} was refused: {error}")
            return
        if isinstance(block, Demo):
            self._forwarded_s = time.monotonic()
            if block.flight_state is not None:  # 0 is a state, too
                self.sources.shown(block.flight_state.is_airborne)
        if gui and block is not NEED_DATA and gui.hears_drone(time.monotonic()):
            self._send(gui, block, datagram)

    def _has_navdata_topic(self) -> bool:
        """Return whether a bridge publishes navdata; the graph is queried only now and then."""
        now_s = time.monotonic()
        if now_s - self._checked_s > PUBLISHER_CHECK_PERIOD_S:
            self._checked_s = now_s
            topic = self._node.resolve_topic_name(NAVDATA_TOPIC)
            self._has_publisher = self._node.count_publishers(topic) > 0
        return self._has_publisher

    def _send_demo(self) -> None:
        gui = self._gui
        if gui is None or self._has_navdata_topic() or not gui.navdata_is_due(time.monotonic()):
            return
        self._send_block(gui, self.sources.demo(gui.controls.hover))

    def _send_detections(self, message: DetectionArray) -> None:
        gui = self._gui
        if gui and not self._has_navdata_topic() and gui.hears_drone(time.monotonic()):
            self._send_block(gui, dronegui_navdata.vision_detect(message))

    def _send_block(self, gui: Gui, block: Navdata) -> None:
        try:
            (datagram,) = gui.navdata([block])
        except LocalProtocolError as error:
            self._node.count_and_warn(UNSENT, str(error))
        else:
            self._send(gui, block, datagram)

    def _send(self, gui: Gui, block: Navdata, datagram: bytes) -> None:
        if isinstance(block, Demo):
            self._node.statistics.facts |= translate.navdata_facts(block)
        if not self._socket:
            return
        for address in gui.receivers(datagram, time.monotonic()):
            try:
                self._socket.send(datagram, address)
            except LinkError as error:
                self._node.count_and_warn(UNSENT, str(error))
            else:
                kind = "navdata" if isinstance(block, Demo) else "detections"
                self._node.statistics.counts[kind if isinstance(block, (Demo, VisionDetect)) else "other navdata"] += 1
