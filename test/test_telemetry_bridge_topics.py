# SPDX-License-Identifier: Apache-2.0
"""telemetry_bridge with documents as text on topics, as a process between real DDS on both sides."""

import json
import threading

import pytest
from processes import Process
from ros_session import RosSession
from sensor_msgs.msg import CompressedImage, Imu
from std_msgs.msg import String
from telemetry_documents import HOVER, ROVER, Clock, changed, drone
from telemetry_peer import jpeg, send_until

from drone_bridge.msg import CommandAxes

PICTURE = jpeg()


class Running:
    """A bridge, with both topics of its peers; with a namespace, whatever other bridges are told and say."""

    def __init__(self, namespace="", **parameters):
        self.ros = RosSession()
        self.namespace = namespace
        own = [f"{topic}:={namespace}{topic}" for topic in ("/drone/telemetry", "/rover/telemetry", "/drone/command")]
        remap = [f"__ns:={namespace}", *own] if namespace else ()
        self.process = Process.node("telemetry_bridge", remap=remap, **parameters)
        try:
            self._telemetry = self.ros.publisher(String, f"{namespace}/drone/telemetry", 10)
            self._rover = self.ros.publisher(String, f"{namespace}/rover/telemetry", 10)
            self.commands = self.ros.subscribe(String, f"{namespace}/drone/command")
            self.clock = Clock()
            self.next_command()
        except BaseException:
            self.close()
            raise

    def send(self, **values):
        self.send_text(json.dumps(drone(timestamp=self.clock.next(), **values)))

    def send_text(self, text):
        self._telemetry.publish(String(data=text))

    def send_rover(self, **values):
        self._rover.publish(String(data=json.dumps(changed(ROVER, timestamp=self.clock.next(), **values))))

    def next_command(self, wanted=lambda command: True):
        """Return the next command that is wanted; those before it are forgotten."""
        self.commands.clear()
        return json.loads(self.commands.wait(lambda message: wanted(json.loads(message.data))).data)

    def close(self):
        self.process.end()
        self.ros.close()


@pytest.fixture(scope="module")
def running():
    running = Running(stamp_source="wire", publish_clock=True)
    yield running
    running.close()


def test_without_telemetry_the_drone_is_told_to_hover(running):
    assert running.next_command() == HOVER


def test_telemetry_comes_from_a_topic(running):
    imus = running.ros.subscribe(Imu, "imu/data")
    send_until(running.send, lambda: len(imus), "telemetry")
    message = imus.wait()
    assert message.angular_velocity.x == 0.01
    assert message.header.stamp.sec >= 100


def test_an_image_larger_than_a_datagram_comes_from_a_topic(running):
    image = PICTURE + bytes(300_000)  # which the decoder does not look at
    compressed = running.ros.subscribe(CompressedImage, "camera/image_raw/compressed")
    send_until(
        lambda: running.send(image=image),
        lambda: len(compressed) and len(compressed.wait().data) == len(image),
        "the large image",
    )


def fly(running):
    publisher = running.ros.publisher(CommandAxes, f"{running.namespace}/cmd_axes")
    message = CommandAxes(thrust=0.5)
    seen = []

    def send():
        publisher.publish(message)
        while len(running.commands):
            seen.append(json.loads(running.commands.wait().data)["thrust"])

    send_until(send, lambda: 0.5 in seen, "the command")
    return publisher, message


def test_commands_go_to_a_topic_and_end_in_a_hover(running):
    fly(running)
    running.next_command(lambda command: command == HOVER)


def test_a_signal_leaves_a_hover_on_the_topic():
    running = Running(namespace="/leaving")
    try:
        publisher, message = fly(running)
        done = threading.Event()

        def repeat():
            while not done.wait(0.01):
                publisher.publish(message)

        thread = threading.Thread(target=repeat)
        thread.start()
        try:
            running.next_command(lambda command: command["thrust"] == 0.5)
            running.commands.clear()
            assert running.process.stop() == 0
        finally:
            done.set()
            thread.join()
        last = HOVER | {"thrust": 1.0}
        while last != HOVER or len(running.commands):
            last = json.loads(running.commands.wait().data)
    finally:
        running.close()
