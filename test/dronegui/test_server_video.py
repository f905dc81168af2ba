# SPDX-License-Identifier: Apache-2.0
"""dronegui_server as a process: ROS images, and packets of a bridge, become video for the controllers."""

import contextlib
from array import array

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from diagnostics import values_of
from dronegui_operator import DroneGuiOperator
from patience import wait_until
from processes import Process
from ros_session import repeating
from sensor_msgs.msg import CompressedImage, Image
from std_msgs.msg import UInt8MultiArray
from video_sender import captured

from drone_bridge.ar_drone.uvlc import check, decode
from drone_bridge.vision.jpegs import jpeg_of_rgb

PIXELS = np.zeros((240, 320, 3), np.uint8)
PIXELS[:120, :, 0] = PIXELS[:, :160, 1] = 200
LARGEST = 1 << 16


@pytest.fixture
def operator(closing):
    made = closing(DroneGuiOperator())
    yield made
    made.stop()


@pytest.fixture
def screen(udp_socket):
    """Socket on the port for video."""
    return udp_socket()


@pytest.fixture
def server(operator, screen, start_child):
    ports = {"port": 0, "navdata_port": operator.navdata_port, "video_port": screen.getsockname()[1]}
    process = start_child("dronegui_server", make=Process.node, **ports)
    operator.call(int(process.wait_for_line(r"Waiting for control packets on 127\.0\.0\.1:(\d+)")[1]))
    return process


def raw():
    return Image(width=320, height=240, encoding="rgb8", step=960, data=array("B", PIXELS.tobytes()))


def packets(*names):
    return [UInt8MultiArray(data=array("B", captured(name))) for name in names]


MESSAGES = {
    "image_raw": raw,
    "image_raw/compressed": lambda: CompressedImage(format="jpeg", data=array("B", jpeg_of_rgb(PIXELS, 90))),
}


@pytest.mark.parametrize("topic", ["image_raw", pytest.param("image_raw/compressed", marks=pytest.mark.exhaustive)])
def test_images_become_video_for_whoever_controls(ros, server, operator, screen, topic):
    message = MESSAGES[topic]()
    publisher = ros.node.create_publisher(type(message), topic, 1)
    operator.keep_sending()
    with repeating(lambda _: publisher.publish(message)):
        seen = [screen.recv(LARGEST) for _ in range(3)]
    numbers = [check(packet).number for packet in seen]
    assert numbers == sorted(set(numbers))
    picture = decode(seen[-1])
    pixels = np.frombuffer(picture.rgb8, np.uint8).reshape(PIXELS.shape).astype(int)
    assert np.abs(pixels - PIXELS).mean() < 8


@pytest.mark.exhaustive
def test_nothing_is_subscribed_to_or_sent_while_nobody_controls(ros, server, operator, screen):
    publisher, message = ros.node.create_publisher(Image, "image_raw", 1), raw()
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    with repeating(lambda _: publisher.publish(message)):
        for _ in range(4):  # a source is selected in each
            reports.wait()
        assert publisher.get_subscription_count() == 0
        operator.keep_sending()
        screen.recv(LARGEST)
        operator.stop()
        wait_until(lambda: publisher.get_subscription_count() == 0, "the end of the subscription")
        screen.setblocking(False)
        with contextlib.suppress(BlockingIOError):  # earlier data
            while screen.recv(LARGEST):
                pass
        reports.clear()
        for _ in range(2):
            reports.wait()
        with pytest.raises(BlockingIOError):
            screen.recv(LARGEST)


@pytest.mark.exhaustive
def test_packets_of_a_bridge_go_on_byte_for_byte_rather_than_its_images(ros, server, operator, screen):
    publisher = ros.node.create_publisher(UInt8MultiArray, "dronegui/video", 1)
    images, image = ros.node.create_publisher(Image, "image_raw", 1), raw()
    (message,) = packets("qvga_q31")
    operator.keep_sending()
    with repeating(lambda _: (images.publish(image), publisher.publish(message))):
        while screen.recv(LARGEST) != captured("qvga_q31"):
            pass  # an image, until the server has discovered the packets
        assert {screen.recv(LARGEST) for _ in range(5)} == {captured("qvga_q31")}


def test_packets_that_would_harm_the_operator_are_counted_and_not_sent(ros, server, operator, screen):
    names = ("refused_cut", "refused_no_end", "hand_not_coded", "refused_run_too_long")
    bad = [*packets(*names), UInt8MultiArray(data=array("B", bytes(70_000))), UInt8MultiArray()]
    publisher = ros.node.create_publisher(UInt8MultiArray, "dronegui/video", 1)
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    operator.keep_sending()
    with repeating(lambda number: publisher.publish(bad[number % len(bad)])):
        reports.wait(lambda report: int(values_of(report).get("refused_images", 0)) > 30)
    (good,) = packets("qcif_q30")
    with repeating(lambda _: publisher.publish(good)):
        assert screen.recv(LARGEST) == captured("qcif_q30")
