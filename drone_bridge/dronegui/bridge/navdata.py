# SPDX-License-Identifier: Apache-2.0
"""The port that receives navdata, and the topics that it is published on."""

import math
import time
from collections.abc import Callable
from typing import Final

from builtin_interfaces.msg import Time
from geometry_msgs.msg import TwistStamped
from nav_msgs.msg import Odometry
from sensor_msgs.msg import BatteryState, Imu, Range
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage

from drone_bridge.dronegui.codec import NEED_DATA, ControllerConnection, Demo, Navdata, VisionDetect
from drone_bridge.dronegui.topics import navdata as translate
from drone_bridge.dronegui.topics.navdata import DeadReckoning
from drone_bridge.msg import DetectionArray
from drone_bridge.net.connector import Cancellation, LinkCancelledError, LinkError, LinkTimeoutError, address_name
from drone_bridge.net.udp import Datagram, UdpListener, UdpStream
from drone_bridge.net.udp import name as name_of
from drone_bridge.ros.common_parameters import odometry_covariances
from drone_bridge.ros.frames import DroneFrameNames
from drone_bridge.ros.link_node import STALE_DATAGRAMS, LinkNode
from drone_bridge.ros.topics import Output, Outputs, latched
from drone_bridge.wire.events import RemoteProtocolError

#: Time between attempts to open the port.
RETRY_S: Final = 2.0
#: Queue depth for raw blocks of navdata.
DEPTH: Final = 50
#: Limits what diagnostics keep of unknown types, which peers choose.
MAX_OTHER_TYPES: Final = 8
MAX_TYPE_LETTERS: Final = 24

# Counts whose growth is a warning.
FOREIGN_NAVDATA: Final = "refused navdata"
PORT_UNAVAILABLE: Final = "missed navdata ports"
PROBLEMS: Final = (FOREIGN_NAVDATA, PORT_UNAVAILABLE, STALE_DATAGRAMS)


class NavdataPort:
    """Receives the GUI's datagrams at our address towards it. For the link's thread."""

    def __init__(
        self,
        node: LinkNode,
        stream: UdpStream,
        connection: ControllerConnection,
        cancellation: Cancellation,
        take: Callable[[Navdata, bytes], None],
    ) -> None:
        """`take` gets each block that could be decoded, and its datagram."""
        self._node = node
        self._own_host, self._gui_host = stream.own_host, stream.peer_host
        self._connection = connection
        self._cancellation = cancellation
        self._take = take
        self._listener: UdpListener | None = None
        self._tried_s = -math.inf
        self._other_types: set[str] = set()

    @property
    def is_open(self) -> bool:
        return self._listener is not None

    def receive_until(self, due_s: float) -> None:
        """Receive navdata until a time of time.monotonic. Raises LinkCancelledError."""
        while True:
            self._open()
            left_s = max(0.0, due_s - time.monotonic())
            if self._listener:
                self._receive(self._listener, left_s)
            elif self._cancellation.wait(min(left_s, RETRY_S)):
                raise LinkCancelledError("Waiting was cancelled.")
            if time.monotonic() >= due_s:
                return

    def close(self) -> None:
        if self._listener:
            self._listener.close()
            self._listener = None

    def _open(self) -> None:
        now_s = time.monotonic()
        if self._listener or now_s < self._tried_s + RETRY_S:
            return
        self._tried_s = now_s
        port = self._node.parameters["navdata_port"]
        try:
            freshness = self._node.fresh_within("navdata_timeout")
            self._listener = UdpListener(
                self._own_host, port, self._cancellation, self._node.wire_log, freshness=freshness
            )
        except LinkError as error:
            self._node.reports.count_and_warn_ongoing(
                PORT_UNAVAILABLE, f"{error} Without it there is no navdata; retrying."
            )
        else:
            self._node.reports.end_ongoing(PORT_UNAVAILABLE)
            self._node.inform(f"Listening for navdata on {address_name(self._own_host, port)}.")

    def _receive(self, listener: UdpListener, timeout_s: float) -> None:
        try:
            datagram = listener.receive(timeout_s)
        except LinkTimeoutError:
            return
        except LinkCancelledError:
            raise
        except LinkError as error:
            self.close()
            self._node.count_and_warn(PORT_UNAVAILABLE, f"{error} The port is opened again.")
            return
        self._read(datagram)

    def _read(self, datagram: Datagram) -> None:
        counts = self._node.statistics.counts
        if datagram.source[0] != self._gui_host:
            self._node.reports.count_and_warn_ongoing(
                FOREIGN_NAVDATA,
                f"Navdata of {name_of(datagram.source)} was refused: the GUI is at {self._gui_host}.",
            )
            return
        self._connection.receive_data(datagram.data)
        try:
            block = self._connection.next_event()
        except RemoteProtocolError as error:
            self._node.count_and_warn(
                "rejected input", f"A datagram of navdata from {name_of(datagram.source)} was refused: {error}"
            )
            return
        if block is NEED_DATA:
            return
        if isinstance(block, Demo):
            counts["navdata"] += 1
            self._node.statistics.facts["navdata source"] = name_of(datagram.source)
        elif isinstance(block, VisionDetect):
            counts["detections"] += 1
        else:
            counts["other navdata"] += 1
            if len(self._other_types) < MAX_OTHER_TYPES:
                self._other_types.add(block.type[:MAX_TYPE_LETTERS])
                self._node.statistics.facts["other navdata types"] = ", ".join(sorted(self._other_types))
        self._take(block, datagram.data)


class NavdataOutputs:
    """Publishes navdata. For the link's thread."""

    def __init__(self, node: LinkNode, names: DroneFrameNames) -> None:
        """Create the publishers that the parameters ask for."""
        self._node = node
        self._names = names
        make = node.make_publisher
        self._demo: Outputs[Demo] = Outputs(
            node,
            [
                Output(make(Imu, "imu/data", 10), self._by(translate.imu)),
                Output(make(BatteryState, "battery_state", 10), self._by(translate.battery_state)),
                Output(make(Range, "altitude", 10), self._by(translate.altitude)),
                Output(make(TwistStamped, "velocity", 10), self._by(translate.velocity)),
            ],
        )
        self._detections = make(DetectionArray, "detections", 10)
        raw = Output(make(String, "dronegui/navdata", DEPTH), _raw)
        self._raw: Outputs[bytes] = Outputs(node, [raw])
        has_odometry = node.parameters["publish_odometry"]
        self._covariances = odometry_covariances(node.parameters)
        self._odometry = make(Odometry, "odom", 10) if has_odometry else None
        self._tf = make(TFMessage, "/tf", 100) if has_odometry and node.parameters["publish_tf"] else None
        self._static_tf = make(TFMessage, "/tf_static", latched())
        self.restart()

    def restart(self) -> None:
        """Start over with odometry and static transforms."""
        self._dead_reckoning = DeadReckoning()
        self._has_static_transforms = False
        self._demo.recheck()
        self._raw.recheck()

    def publish(self, block: Navdata, datagram: bytes, stamp: Time) -> None:
        """Publish a block, and the datagram that contains it."""
        self._raw.publish(datagram, stamp)
        if isinstance(block, VisionDetect):
            self._node.publish(self._detections, translate.detections(block, stamp, self._names))
        elif isinstance(block, Demo):
            if not self._has_static_transforms:
                self._has_static_transforms = True
                self._node.publish(self._static_tf, translate.static_transforms(self._names, stamp))
            self._demo.publish(block, stamp)
            self._publish_odometry(block, stamp)

    def _publish_odometry(self, demo: Demo, stamp: Time) -> None:
        pose = self._dead_reckoning.update(demo, time.monotonic())
        if pose is None or self._odometry is None:
            return
        message = translate.odometry(demo, pose, self._covariances, stamp, self._names)
        self._node.publish(self._odometry, message)
        if self._tf:
            self._node.publish(self._tf, translate.odometry_tf(message))

    def _by(self, make: Callable[[Demo, Time, DroneFrameNames], object]) -> Callable[[Demo, Time], object]:
        return lambda demo, stamp: make(demo, stamp, self._names)


def _raw(datagram: bytes, _: Time) -> String:
    return String(data=datagram.decode())
