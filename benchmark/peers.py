# SPDX-License-Identifier: Apache-2.0
"""The images of testbed.py through other bridges: python benchmark/peers.py ros_tcp_endpoint rosbridge.

The floor, testbed_bridge and the installed ones of the others take turns with the same stereo images; see README.md.
The others don't answer frames, so there is no round trip, and unpaced they get as much as TCP accepts.
"""

import base64
import itertools
import json
import os
import random
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final, Protocol

import testbed_marks as marks
from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from children import ChildError
from rclpy.serialization import serialize_message
from rounds import make_parser, systems, take_turns
from sensor_msgs.msg import Image
from system import READY_TIMEOUT_S, Measurement, Place, System, free_port, script_command, ticks, until
from table import BRIDGE, FLOOR, spread
from testbed_marks import SIDES, Mark
from testbed_system import Received, Size, TestbedSystem

RATE_HZ: Final = 30.0
CONNECT_TIMEOUT_S: Final = 20.0
SETTLE_S: Final = 0.5  # for what is still queued when the last image has been sent


class Client(Protocol):
    """Sends images into ROS through another bridge."""

    def send(self, side: str, image: bytearray) -> None:
        """Send the pixels of one image."""

    def close(self) -> None:
        """Close the connection."""


class EndpointClient:
    """Unity's side of ROS-TCP-Endpoint: a topic and CDR, each with its length. The client serializes the CDR."""

    package, executable = "ros_tcp_endpoint", "default_server_endpoint"
    source = "branch main-ros2 of https://github.com/Unity-Technologies/ROS-TCP-Endpoint"

    def __init__(self, port: int, namespace: str, size: Size) -> None:
        self._socket = _connected(port)
        self._topics = {side: f"{namespace}/{side}/image_raw".encode() for side in SIDES}
        for topic in self._topics.values():
            command = {"topic": topic.decode(), "message_name": "sensor_msgs/Image", "queue_size": 1, "latch": False}
            self._write(b"__publish", json.dumps(command).encode() + b"\0")
        self._cdr = {side: bytearray(serialize_message(_image(size))) for side in SIDES}

    @staticmethod
    def parameters(port: int) -> list[str]:
        return ["-p", "ROS_IP:=127.0.0.1", "-p", f"ROS_TCP_PORT:={port}"]

    def send(self, side: str, image: bytearray) -> None:
        """Send the pixels, which end the message."""
        cdr = self._cdr[side]
        cdr[-len(image) :] = image
        self._write(self._topics[side], cdr)

    def close(self) -> None:
        self._socket.close()

    def _write(self, destination: bytes, data: bytes | bytearray) -> None:
        self._socket.sendall(struct.pack("<I", len(destination)) + destination + struct.pack("<I", len(data)))
        self._socket.sendall(data)


class RosbridgeClient:
    """A client of rosbridge: JSON, with the pixels in base64, which is what it accepts by default."""

    package, executable = "rosbridge_server", "rosbridge_websocket"
    source = "ros-$ROS_DISTRO-rosbridge-server of apt, or https://github.com/RobotWebTools/rosbridge_suite"

    def __init__(self, port: int, namespace: str, size: Size) -> None:
        from websockets.sync.client import connect

        _connected(port).close()  # it listens
        self._socket = connect(f"ws://127.0.0.1:{port}", max_size=None, compression=None)
        self._before: dict[str, str] = {}
        width, height = size
        for side in SIDES:
            topic = f"{namespace}/{side}/image_raw"
            self._socket.send(json.dumps({"op": "advertise", "topic": topic, "type": "sensor_msgs/Image"}))
            fields = {"width": width, "height": height, "encoding": "rgb8", "step": 3 * width, "data": ""}
            text = json.dumps({"op": "publish", "topic": topic, "msg": fields})
            self._before[side] = text.removesuffix('"}}')

    @staticmethod
    def parameters(port: int) -> list[str]:
        return ["-p", f"port:={port}", "-p", "address:=127.0.0.1"]

    def send(self, side: str, image: bytearray) -> None:
        """Send the pixels, which end the message."""
        self._socket.send(f'{self._before[side]}{base64.b64encode(image).decode()}"}}}}')

    def close(self) -> None:
        self._socket.close()


CLIENTS: Final[dict[str, Any]] = {"ros_tcp_endpoint": EndpointClient, "rosbridge": RosbridgeClient}


class PeerSystem(System):
    """Another bridge, between a client in this process and a subscriber in a second one."""

    def __init__(self, side: str, place: Place) -> None:
        self._kind = CLIENTS[side]
        self._port = free_port()
        self._namespace = f"/benchmark_{os.getpid()}"
        self._client: Client | None = None
        prefix = Path(get_package_prefix(self._kind.package))
        program = str(prefix / "lib" / self._kind.package / self._kind.executable)
        command = [program, "--ros-args", *self._kind.parameters(self._port)]
        super().__init__(side, place, command, {"subscriber": script_command("testbed_subscriber.py", self._namespace)})
        self.subject.may_fail = True  # by Ctrl-C

    def open(self, size: Size) -> None:
        """Send images of this size from now on."""
        with self.explained():
            self.close_peer()
            self._client = self._kind(self._port, self._namespace, size)
            self._images = {side: bytearray([marks.FILL[side]]) * (3 * size[0] * size[1]) for side in SIDES}

    def warm_up(self) -> None:
        """Send images until the subscriber has got both, and some more."""
        with self.explained():
            for number in ticks(round(READY_TIMEOUT_S * RATE_HZ), RATE_HZ):
                self._send(0, number)
                if self.helpers["subscriber"].has_spoken:
                    return
        raise ChildError(f"The subscriber of {self.side} got no images within {READY_TIMEOUT_S:g} s.")

    def unpaced(self, measurement: Measurement, seconds: float) -> None:
        """Send images as fast as they are taken."""
        self._measure(measurement, until(seconds))

    def paced(self, measurement: Measurement, seconds: float, rate_hz: float) -> None:
        """Send so many stereo images per second."""
        self._measure(measurement, ticks(round(seconds * rate_hz), rate_hz))

    def received(self, measurement: Measurement) -> Received:
        """Return what the subscriber got; known after `stop`."""
        return Received(**self.notes[str(measurement.number)])

    def close_peer(self) -> None:
        if self._client:
            self._client.close()
        self._client = None

    def _measure(self, measurement: Measurement, numbers: Iterable[int]) -> None:
        with self.turn(measurement):
            for number in numbers:
                self._send(measurement.number, number)
                measurement.items += 1
            time.sleep(SETTLE_S)
        measurement.seconds -= SETTLE_S

    def _send(self, measurement: int, number: int) -> None:
        assert self._client
        mark = Mark(measurement, number, time.monotonic_ns())
        for side in SIDES:
            marks.write_one(self._images[side], mark)
            self._client.send(side, self._images[side])


def start(side: str, place: Place) -> Any:
    """Start a side."""
    return TestbedSystem(side, place, control=False) if side in (FLOOR, BRIDGE) else PeerSystem(side, place)


def missing(side: str) -> str | None:
    """Return a sentence about what has to be installed for this side, if anything."""
    kind = CLIENTS[side]
    try:
        get_package_prefix(kind.package)
    except PackageNotFoundError:
        return f"{side} is left out: the package {kind.package} is not installed here. It is in {kind.source}."
    if kind is RosbridgeClient:
        try:
            import websockets  # noqa: F401
        except ImportError:
            return f"{side} is left out: its client needs websockets (pip install websockets)."
    return None


def measure_round(sides: list[str], size: Size, seconds: float, note: Callable[[str, str, float], None]) -> None:
    """One round with one size; `note` gets what was measured, the side, and the value."""
    with systems(start, sides) as started:
        for system in started:
            system.open(size)
        for system in started:
            system.warm_up()
        paced = take_turns(started, lambda system, *rest: system.paced(*rest, rate_hz=RATE_HZ), seconds)
        unpaced = take_turns(started, lambda system, *rest: system.unpaced(*rest), seconds)
    for system in started:
        side = system.side
        received = system.received(unpaced[side])
        note("images/s to the subscriber, unpaced", side, received.images / unpaced[side].seconds)
        note(f"CPU per image at {RATE_HZ:g} Hz (ms)", side, paced[side].cpu_per_item_ms / 2)
        latencies_s = system.received(paced[side]).latencies_s
        note(f"latency at {RATE_HZ:g} Hz, p50 (ms)", side, 1000 * median(latencies_s))


def main() -> int:
    """Measure all that is installed, and print the table."""
    parser = make_parser(__doc__)
    parser.add_argument("peers", nargs="+", choices=CLIENTS, metavar="PEER", help=f"of {', '.join(CLIENTS)}")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds = 2, 1.0
    sides = [FLOOR, BRIDGE]
    for peer in options.peers:
        if sentence := missing(peer):
            print(sentence, file=sys.stderr)
        else:
            sides.append(peer)
    if len(sides) == 2:
        return 1
    values: dict[tuple[str, str], dict[str, list[float]]] = {}

    def note(name: str, what: str, side: str, value: float) -> None:
        values.setdefault((name, what), {}).setdefault(side, []).append(value)

    try:
        for number, (width, height) in itertools.product(range(options.rounds), ((320, 240), (640, 480), (1280, 720))):
            name = f"{width} x {height}"
            print(f"round {number + 1} of {options.rounds}: {name}", flush=True)
            order = random.sample(sides, len(sides))
            measure_round(order, (width, height), options.seconds, partial(note, name))
    except ChildError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(f"\n| stereo | | {' | '.join(sides)} |\n|---|---|{'---|' * len(sides)}")
    for (name, what), by_side in values.items():
        digits = 0 if what.startswith("images") else 2
        print(f"| {name} | {what} | {' | '.join(spread(by_side[side], digits) for side in sides)} |")
    return 0


def _image(size: Size) -> Image:
    width, height = size
    return Image(width=width, height=height, encoding="rgb8", step=3 * width, data=bytes(3 * width * height))


def _connected(port: int) -> socket.socket:
    end_s = time.monotonic() + CONNECT_TIMEOUT_S
    while True:
        try:
            connected = socket.create_connection(("127.0.0.1", port))
        except OSError:
            if time.monotonic() > end_s:
                raise
            time.sleep(0.05)
        else:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connected


if __name__ == "__main__":
    sys.exit(main())
