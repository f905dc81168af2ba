# SPDX-License-Identifier: Apache-2.0
"""Program with one ROS node: reach_probe.py hear | say WORD | drive | look TOPIC | exchange NAME OTHER.

Modes: receive on cmd_vel, command, drive ahead with stamped commands, or receive images. `exchange` serves a service
and images below a name, and uses those of another probe.
"""

import contextlib
import sys

import rclpy
from geometry_msgs.msg import TwistStamped
from rclpy.executors import ExternalShutdownException
from sensor_msgs.msg import Image
from std_srvs.srv import Trigger

IMAGE_BYTES = 640 * 480 * 3


def exchange(node, name, other):
    """Serve and publish below one name. Call and subscribe below the other."""
    publisher = node.create_publisher(Image, f"{name}/image", 1)
    image = Image(data=bytes(IMAGE_BYTES))
    node.create_service(Trigger, f"{name}/ask", lambda _, response: response)
    client = node.create_client(Trigger, f"{other}/ask")

    def say(_):
        print("answered", flush=True)

    def ask():  # repeatedly, since the first ones may precede discovery
        publisher.publish(image)
        if client.service_is_ready():
            client.call_async(Trigger.Request()).add_done_callback(say)

    node.create_timer(0.3, ask)
    node.create_subscription(Image, f"{other}/image", lambda it: print("seen", len(it.data), flush=True), 1)


def main():
    rclpy.init()
    node = rclpy.create_node("reach_probe")
    if sys.argv[1] == "hear":
        node.create_subscription(
            TwistStamped, "cmd_vel", lambda message: print("commanded by", message.header.frame_id, flush=True), 10
        )
        print("listening", flush=True)
    elif sys.argv[1] == "drive":
        publisher = node.create_publisher(TwistStamped, "cmd_vel_stamped", 1)

        def drive():
            message = TwistStamped()
            message.header.stamp = node.get_clock().now().to_msg()
            message.twist.linear.x = 0.3
            publisher.publish(message)

        node.create_timer(0.05, drive)
    elif sys.argv[1] == "exchange":
        exchange(node, *sys.argv[2:])
    elif sys.argv[1] == "look":
        node.create_subscription(Image, sys.argv[2], lambda _: print("seen", flush=True), 1)
    else:
        publisher = node.create_publisher(TwistStamped, "cmd_vel", 10)
        message = TwistStamped()
        message.header.frame_id = sys.argv[2]
        node.create_timer(0.1, lambda: publisher.publish(message))
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(node)
    node.destroy_node()
    rclpy.try_shutdown()


main()
