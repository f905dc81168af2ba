# SPDX-License-Identifier: Apache-2.0
"""telemetry_bridge as a process: images over UDP, and documents as text on topics."""

import json

from nav_msgs.msg import Odometry
from processes import Process
from ros_session import repeating
from sensor_msgs.msg import CompressedImage, Imu
from std_msgs.msg import String
from telemetry_documents import HOVER, Clock, drone
from telemetry_peer import jpeg, send_until

from drone_bridge.msg import CommandAxes

PICTURE = jpeg()


def test_documents_come_and_go_by_topics_and_a_signal_leaves_a_hover_there(ros):
    telemetry = ros.publisher(String, "/drone/telemetry", 10, subscribers=0)
    commands = ros.subscribe(String, "/drone/command")
    clock = Clock()
    image = PICTURE + bytes(300_000)  # larger than a datagram; the decoder ignores data after the picture
    imus, images = ros.subscribe(Imu, "imu/data"), ros.subscribe(CompressedImage, "camera/image_raw/compressed")

    def send():
        telemetry.publish(String(data=json.dumps(drone(image, timestamp=clock.next()))))

    with Process.node("telemetry_bridge", transport="topic", stamp_source="wire", rover_documents=True) as process:
        assert json.loads(commands.wait().data) == HOVER  # before any document
        send_until(send, lambda: len(imus) and len(images), "telemetry")
        assert imus.wait().header.stamp.sec >= 100
        assert len(images.wait().data) == len(image)
        wheels, rovers = ros.publisher(Odometry, "rover/wheel_odom"), ros.subscribe(String, "/rover/telemetry")
        moving = Odometry()
        moving.twist.twist.linear.x, moving.pose.pose.orientation.w = 0.5, 1.0
        with repeating(lambda _: wheels.publish(moving), 0.05):
            assert "0.5" in rovers.wait().data
        axes = ros.publisher(CommandAxes, "cmd_axes")
        with repeating(lambda _: axes.publish(CommandAxes(thrust=0.5)), 0.01):
            commands.wait(lambda message: json.loads(message.data)["thrust"] == 0.5)
            commands.clear()
            assert process.stop() == 0
    last = None
    while last != HOVER or len(commands):
        last = json.loads(commands.wait().data)
