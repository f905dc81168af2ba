# SPDX-License-Identifier: Apache-2.0
"""dronegui_server: stands in for the control GUI, so that programs written for it fly any drone in ROS.

The mirror of dronegui_bridge, see docs/dronegui.md: control packets become cmd_vel, and the drone's topics
become navdata.
"""

import contextlib
import time
from typing import Any, Final, NamedTuple

from std_msgs.msg import Bool

from drone_bridge.dronegui.codec import ControlPacket, Controls
from drone_bridge.dronegui.device import Dialect, Gui
from drone_bridge.dronegui.server.buttons import REFUSED, UNANSWERED, Buttons, ServiceButtons, TopicButtons
from drone_bridge.dronegui.server.navdata import UNSENT, NavdataSender
from drone_bridge.dronegui.server.parameters import PARAMETERS, TARGETS
from drone_bridge.dronegui.server.sources import DOUBTFUL
from drone_bridge.dronegui.topics.controls import FullScale, twist_from_controls
from drone_bridge.net.connector import (
    Backoff,
    Cancellation,
    LinkCancelledError,
    LinkError,
    LinkTimeoutError,
    address_name,
)
from drone_bridge.net.udp import Datagram, UdpListener, open_preferred
from drone_bridge.net.udp import name as name_of
from drone_bridge.ros.common_parameters import read_allowed_peers, read_group
from drone_bridge.ros.lease import LeaseWatch
from drone_bridge.ros.link_node import AFTER_STALLS, STALE_DATAGRAMS, LinkNode
from drone_bridge.ros.program import run
from drone_bridge.ros.velocity_output import OPERATORS_LOST, VelocityOutput
from drone_bridge.wire.events import RemoteProtocolError

LATE: Final = "late packets"


class Operators(NamedTuple):
    """The senders of packets, as one stream that begins with the first packet."""

    first: Datagram

    @property
    def peer(self) -> str:
        return name_of(self.first.source)

    def close(self) -> None:
        """Keep the port open while the node is active."""


class ControlPort:
    """The port for packets, as an endpoint whose link begins with the first packet."""

    def __init__(self, listener: UdpListener, node: LinkNode, cancellation: Cancellation) -> None:
        self.listener = listener
        self.backoff: Backoff = listener.backoff
        self._node = node
        self._cancellation = cancellation

    @property
    def port(self) -> int:
        return self.listener.port

    def open(self) -> Operators:
        """Wait for a datagram. Raises LinkCancelledError."""
        while True:
            try:
                return Operators(self.listener.receive())
            except LinkCancelledError:
                raise
            except LinkError as error:
                self._node.count_and_warn("lost connections", str(error))
                if self._cancellation.wait(self.backoff.next_delay_s()):
                    raise LinkCancelledError("Waiting was cancelled.") from None

    def close(self) -> None:
        self.listener.close()


class DroneGuiServer(LinkNode):
    """Takes packets on the link's thread, and sends navdata in the executor.

    The protocol has no time-out, so this node adds one: after `command_timeout` of silence from the operator it
    publishes a cmd_vel of zero, and then nothing.
    """

    open_state = "serving"
    rates = ("packets", "commands", "navdata", "detections")
    problems = (
        *LinkNode.problems,
        STALE_DATAGRAMS,
        AFTER_STALLS,
        LATE,
        DOUBTFUL,
        REFUSED,
        UNANSWERED,
        UNSENT,
        "rejected messages",
        OPERATORS_LOST,
        "dropped messages",
    )
    buttons: Buttons

    def __init__(self, **options: Any) -> None:
        super().__init__("dronegui_server", PARAMETERS, **options)

    # The lifecycle.

    def set_up(self) -> None:
        """Read the parameters and create publishers, subscriptions and clients."""
        get = self.parameters.__getitem__
        self._allowed_peers = read_allowed_peers(self.parameters)
        self._dialect = Dialect(
            python_literals=get("python_literals"),
            loose_values=get("loose_values"),
            is_bootstrapped=get("bootstrapped"),
            navdata_port=get("navdata_port"),
            navdata_rate=get("navdata_rate"),
        )
        self._velocities = VelocityOutput(self)
        self.navdata = NavdataSender(self)
        are_services = get("buttons_as") == "services"
        default = "dronegui_bridge/{}" if are_services else "{}"
        targets = {name: get(f"target.{name}") or default.format(name) for name in TARGETS}
        if not are_services:
            self.buttons = TopicButtons(self, targets, self.navdata.sources.done)
            return
        # The services of a bridge that was killed stay in the ROS graph for as long as DDS believes in it.
        of_bridge = {name for name in TARGETS if not get(f"target.{name}")}
        lease = LeaseWatch(self, Bool, "flying", lambda: None) if of_bridge else None
        self.buttons = ServiceButtons(
            self,
            targets,
            self.navdata.sources.done,
            lambda name: lease is not None and lease.is_expired and name in of_bridge,
        )

    def make_endpoint(self, cancellation: Cancellation) -> ControlPort:
        """Listen for packets, and open the socket for navdata."""
        host = self.parameters["host"]
        freshness = self.fresh_within("command_timeout")
        listener = UdpListener(host, self.parameters["port"], cancellation, self.wire_log, freshness=freshness)
        try:
            source_port = self.parameters["navdata_source_port"]
            socket, problem = open_preferred(host, source_port, cancellation, self.wire_log)
        except LinkError:
            listener.close()
            raise
        if problem:
            self.get_logger().info(f"{problem} Navdata goes out from port {socket.port} instead.")
        self._gui = Gui(self, self._dialect, socket.loopback_host)
        self._sender = ""
        self.navdata.open(self._gui, socket)
        self._port = ControlPort(listener, self, cancellation)
        self.get_logger().info(f"Waiting for control packets on {address_name(host, listener.port)}.")
        return self._port

    def stop_waiting(self) -> None:
        """Send nothing more."""
        self.navdata.close()

    # The conversation, on the link's thread.

    def converse(self, stream: Operators) -> None:
        """Handle packets until cancelled; publish zero at the end."""
        try:
            self._take(stream.first)
            due_s = time.monotonic()
            while True:
                with contextlib.suppress(LinkTimeoutError):
                    self._take(self._port.listener.receive(max(0.0, due_s - time.monotonic())))
                if time.monotonic() >= due_s:
                    self._follow()
                    self.navdata.report()
                    due_s = max(due_s + 1 / self.parameters["rate"], time.monotonic())
        finally:
            self._stop()

    def _take(self, datagram: Datagram) -> None:
        sender = name_of(datagram.source)
        if not self._allowed_peers.allows(datagram.source[0]):
            self.count_and_warn("refused peers", f"{sender} was refused: it is not in allowed_peers.")
            return
        if not self.takes_commands():
            return
        was_gone = not self._velocities.is_active
        try:
            event = self._gui.receive(datagram.data, datagram.source, time.monotonic())
        except RemoteProtocolError as error:
            self.count_and_warn("rejected input", f"A packet from {sender} was refused: {error}")
            return
        if not isinstance(event, ControlPacket):
            sentence = f"Packets from {sender} arrive late: {event.seq:g} after {event.newest_seq:g}."
            self.reports.count_and_warn_ongoing(LATE, f"{sentence} A restarted sender must begin with seq 1.")
            return
        self.reports.end_ongoing(LATE)
        self.statistics.counts["packets"] += 1
        self.statistics.liveness.heard()
        if sender != self._sender or was_gone:
            self.inform(f"Controlled by {sender}.")
            self._sender = self.statistics.peer = sender

    # The Drone of the GUI, on the link's thread.

    @property
    def is_flying(self) -> bool:
        return self.navdata.is_flying

    def take_off(self) -> None:
        self._press("takeoff")

    def land(self) -> None:
        self._press("land")

    def reset(self) -> None:
        self._press("reset")

    def steer(self, controls: Controls) -> None:
        """Publish hover and velocities."""
        self.buttons.hold_hover(controls.hover)
        full_scale = read_group(self.parameters, "full_scale", FullScale)
        self._velocities.command(twist_from_controls(controls, full_scale))

    def _press(self, name: str) -> None:
        if name != "land" and self.hold.is_held:
            self.count_and_warn(REFUSED, f"{name} was pressed, and is refused while the vehicle is held.")
            return
        self.inform(f"{self.statistics.peer} presses {name}.")
        self.navdata.sources.pressed(name)
        self.buttons.press(name)

    def _follow(self) -> None:
        """Repeat the last command until the operator is silent; then the drone hovers.

        A zero cmd_vel alone would hold it level for a while, so that it drifts, even if the operator left it hovering.
        """
        if not self._sender:
            return
        if self._velocities.repeat(self._sender):
            self.buttons.hold_hover(self._gui.controls.hover)  # again, for services that were not available
        elif self._velocities.is_last_word:
            self.buttons.hold_hover(True)
        else:
            self.buttons.release_hover()

    def _stop(self) -> None:
        self._velocities.finish()  # before hover is released: the bridge follows what comes after that
        self.buttons.release_hover()


def main() -> int:
    """Run the node."""
    return run(DroneGuiServer)
