# SPDX-License-Identifier: Apache-2.0
"""Images published from reused memory, through DDS."""

from array import array

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Image

from drone_bridge.ros.topics.images import Rgb8Image

WIDTH, HEIGHT = 160, 120
SIZE = 3 * WIDTH * HEIGHT


def pattern(seed, size=SIZE):
    return array("B", np.random.default_rng(seed).integers(0, 256, size, np.uint8).tobytes())


def test_images_published_from_the_same_memory_arrive_byte_for_byte(ros):
    """publish() does not use the array after it returns, with this rclpy and middleware."""
    reliable = QoSProfile(depth=20, reliability=ReliabilityPolicy.RELIABLE)
    inbox = ros.subscribe(Image, "images", reliable)
    publisher = ros.publisher(Image, "images", reliable)
    pixels = array("B", bytes(SIZE))
    image = Rgb8Image(WIDTH, HEIGHT, "camera")
    for seed in range(10):
        memoryview(pixels)[:] = pattern(seed)
        publisher.publish(image.filled(pixels, Time(sec=seed)))
        memoryview(pixels)[:] = bytes(SIZE)
    for seed in range(10):
        received = inbox.wait()
        assert received.header.stamp.sec == seed
        assert received.data == pattern(seed)
        assert (received.width, received.height, received.encoding) == (WIDTH, HEIGHT, "rgb8")
