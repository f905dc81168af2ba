# SPDX-License-Identifier: Apache-2.0
"""Navdata for operators: blocks forwarded unchanged from a bridge, or built from other topics."""

import math
import time
from typing import Final

from std_msgs.msg import String

from drone_bridge.link_node.link_node import LinkNode
from drone_bridge.links.errors import LinkError
from drone_bridge.links.udp import UdpListener
from drone_bridge.msg import DetectionArray
from drone_bridge.protocols.dronegui import (
    MAX_DATAGRAM_BYTES,
    NEED_DATA,
    ControllerConnection,
    Demo,
    FlightState,
    Navdata,
    VisionDetect,
)
from drone_bridge.protocols.errors import LocalProtocolError, RemoteProtocolError
from drone_bridge.servers.dronegui.sources import DroneSources
from drone_bridge.translate import dronegui as translate
from drone_bridge.translate import dronegui_navdata
from drone_bridge.vehicle_side.dronegui import Gui

NAVDATA_TOPIC: Final = "dronegui/navdata"
UNSENT: Final = "unsent navdata"
SILENT_SOURCES: Final = "sources"
#: How often it is asked who publishes.
AUDIENCE_PERIOD_S: Final = 0.1
#: Blocks that wait for the executor: a drone sends some 15 times per second, a few at a time.
DEPTH: Final = 50


class NavdataSender:
    """Sends navdata, in the executor, while a GUI is there to know where to."""

    def __init__(self, node: LinkNode) -> None:
        """Create the subscriptions."""
        self._node = node
        self._reader = ControllerConnection()
        self._handed_on: tuple[float, FlightState | None] | None = None  # when the last demo came, and what it tells
        self._has_publisher = False
        self._asked_s = -math.inf
        self._gui: Gui | None = None
        self._socket: UdpListener | None = None
        self.sources = DroneSources(node, self._send_demo)
        node.make_subscription(DetectionArray, "detections", self._send_detections, 10)
        node.make_subscription(String, NAVDATA_TOPIC, self._hand_on, DEPTH)

    def open(self, gui: Gui, socket: UdpListener) -> None:
        """Send from now on, out of this socket."""
        self._handed_on = None
        self._gui, self._socket = gui, socket

    def close(self) -> None:
        """Send nothing more."""
        self._gui = None
        if self._socket:
            self._socket.close()

    @property
    def is_flying(self) -> bool:
        """Whether the drone is in the air, as the newest navdata or a topic tells."""
        state = self._handed_on_state
        if state is not None:  # the state 0 is one, too
            return state.is_airborne
        return bool(self.sources.is_flying)

    def report(self) -> None:
        """Show in diagnostics whether there is anything to tell. For the link's thread."""
        is_told = self._is_handed_on or self.sources.is_told
        complaint = None if is_told else "no topic gives the drone's motion, so no navdata is sent"
        advice = "expected are imu/data, odom, velocity, altitude, or a bridge's dronegui/navdata"
        self._node.reports.keep_condition(SILENT_SOURCES, complaint, advice)

    @property
    def _is_handed_on(self) -> bool:
        """Whether a bridge hands on what its drone sends."""
        came = self._handed_on
        return came is not None and time.monotonic() - came[0] <= self._node.parameters["source_timeout"]

    @property
    def _handed_on_state(self) -> FlightState | None:
        came = self._handed_on
        return came[1] if came and self._is_handed_on else None

    def _hand_on(self, message: String) -> None:
        """Send a block on, byte for byte."""
        gui = self._gui
        datagram = message.data.encode()[: MAX_DATAGRAM_BYTES + 1]
        self._reader.receive_data(datagram)
        try:
            block = self._reader.next_event()
        except RemoteProtocolError as error:
            self._node.complain("rejected messages", f"A message on {NAVDATA_TOPIC} was refused: {error}")
            return
        if isinstance(block, Demo):
            self._handed_on = time.monotonic(), block.flight_state
        if gui and block is not NEED_DATA and gui.hears_drone(time.monotonic()):
            self._send(gui, block, datagram)

    def _is_somebody_handing_on(self) -> bool:
        """Return whether a bridge is there to hand on what its drone sends; the graph is not asked all the time."""
        now_s = time.monotonic()
        if now_s - self._asked_s > AUDIENCE_PERIOD_S:
            self._asked_s = now_s
            topic = self._node.resolve_topic_name(NAVDATA_TOPIC)
            self._has_publisher = self._node.count_publishers(topic) > 0
        return self._has_publisher

    def _send_demo(self) -> None:
        gui = self._gui
        if gui is None or self._is_somebody_handing_on() or not gui.navdata_is_due(time.monotonic()):
            return
        self._send_block(gui, self.sources.demo(gui.controls.hover))

    def _send_detections(self, message: DetectionArray) -> None:
        gui = self._gui
        if gui and not self._is_somebody_handing_on() and gui.hears_drone(time.monotonic()):
            self._send_block(gui, dronegui_navdata.vision_detect(message))

    def _send_block(self, gui: Gui, block: Navdata) -> None:
        try:
            (datagram,) = gui.navdata([block])
        except LocalProtocolError as error:
            self._node.complain(UNSENT, str(error))
        else:
            self._send(gui, block, datagram)

    def _send(self, gui: Gui, block: Navdata, datagram: bytes) -> None:
        if isinstance(block, Demo):
            self._node.statistics.facts |= translate.navdata_facts(block)
        if not self._socket:
            return
        for address in gui.controllers:
            try:
                self._socket.send(datagram, address)
            except LinkError as error:
                self._node.complain(UNSENT, str(error))
            else:
                kind = "navdata" if isinstance(block, Demo) else "detections"
                self._node.statistics.counts[kind if isinstance(block, (Demo, VisionDetect)) else "other navdata"] += 1
