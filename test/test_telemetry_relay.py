# SPDX-License-Identifier: Apache-2.0
"""Through ROS: a landing program, telemetry_server, topics, telemetry_bridge, and a drone that sends documents."""

import base64

import pytest
from processes import Process
from ros_session import wait_until
from telemetry_documents import DRONE, HOVER, drone
from telemetry_operator import TelemetryOperator
from telemetry_peer import TelemetryPeer, jpeg

COMMAND = {"thrust": 0.1234567890123456, "pitch": -0.3, "roll": 1 / 3, "yaw": 0.5}
STEP_S = 0.04


class Relay:
    """Both nodes, a drone and an operator. Documents are stamped with the drone's time, so that it arrives as well."""

    def __init__(self):
        self.operator = TelemetryOperator()
        self.server = Process.node("telemetry_server", port=self.operator.port, rate=500.0)
        self.drone = None
        self.start_bridge()
        self._time_s = 100.0

    def start_bridge(self):
        self.bridge = Process.node("telemetry_bridge", transport="udp", port=0, stamp_source="wire")
        port = int(self.bridge.wait_for_line(r"Waiting for telemetry on 127\.0\.0\.1:(\d+)")[1])
        if self.drone:
            self.drone.bridge_port = port
        else:
            self.drone = TelemetryPeer(port)

    def document(self, image=None, **values):
        """Return the drone's next document."""
        self._time_s = round(self._time_s + STEP_S, 6)
        return drone(image, timestamp=self._time_s, **values)

    def send(self, document):
        """Send a document, and return what arrives of it; a document of a link that is just forming may get lost."""
        for _ in range(600):
            self.drone.send(document)
            if not self.operator.hears_nothing_for(0.1):
                return self.operator.last
            document = {**document, "timestamp": self.document()["timestamp"]}
        raise AssertionError("nothing arrived")

    def settle(self):
        """Send documents until all of one arrives, what has a topic of its own as well, and nothing is on its way."""
        sent = self.document()
        assert self.operator.receive_until(lambda: self.drone.send(self.document()), "landed", sent["landed"])
        while not self.operator.hears_nothing_for(0.5):
            pass

    def fly_until(self, command):
        """Send documents until one is answered by this command."""
        before = len(self.drone.commands)

        def is_commanded():
            self.drone.send(self.document())
            self.operator.hears_nothing_for(0.05)
            return command in self.drone.commands[before:]

        wait_until(is_commanded, f"{command}")

    def close(self):
        self.drone.close()
        self.operator.close()
        self.server.end()
        self.bridge.end()


@pytest.fixture
def relay(domain, closing):
    return closing(Relay())


def numbers(document, prefix=""):
    """Return the numbers of a document by their paths; images aside."""
    found = {}
    for name, value in document.items():
        if isinstance(value, dict):
            found |= numbers(value, f"{prefix}{name}.")
        elif name != "image":
            found[f"{prefix}{name}"] = value
    return found


def test_documents_arrive_in_order_with_every_number_and_every_byte_of_their_images(relay):
    relay.settle()
    sent_images, images = [], []
    for number in range(40):
        image = jpeg(32, 24 + number) if number % 5 == 0 else None
        values = {"imu__orientation__yaw": 0.01 * number, "altimeter__altitude": 5.0 - 0.1 * number}
        pad = None if number % 7 == 0 else DRONE["landing_pad"]
        document = relay.document(image, **values, landing_pad=pad, landed=number >= 30)
        relay.drone.send(document)
        arrived = relay.operator.wait(lambda arrived: arrived["timestamp"] == document["timestamp"])  # noqa: B023
        assert relay.operator.hears_nothing_for(0.01), "something was sent twice"
        told, heard = numbers(document), numbers(arrived)
        size = {name: heard.pop(name) for name in ("camera.width", "camera.height")}
        expected = {name: value for name, value in told.items() if name not in size}
        assert heard.keys() == expected.keys()
        for name, value in expected.items():
            if value is None or isinstance(value, bool):
                assert heard[name] == value or name == "landed"  # which has a topic of its own
            else:
                assert heard[name] == pytest.approx(value, abs=1e-6), name
        if image:
            sent_images.append(image)
        if arrived["camera"]["image"]:
            images.append(base64.b64decode(arrived["camera"]["image"]))
    assert images == sent_images[: len(images)]
    assert len(images) >= len(sent_images) - 1
    assert relay.operator.receive_until(lambda: relay.drone.send(relay.document(landed=True)), "landed", True)


def test_commands_arrive_to_the_last_digit_and_silence_is_hover(relay):
    relay.send(relay.document())
    relay.operator.keep_sending(COMMAND)
    relay.fly_until(COMMAND)
    relay.operator.stop()
    relay.fly_until(HOVER)
