# SPDX-License-Identifier: Apache-2.0
"""What a program that looks for topics has to ask of a discovery server."""

import os


def ask_for_all_topics() -> None:
    """Have a Fast DDS discovery server, if there is one, tell this process of every topic. Call it before rclpy.init.

    A server tells a client of those topics alone that the client has itself. Who wants to know of others has to be a
    super client, which this process becomes unless ROS_SUPER_CLIENT says otherwise.
    """
    if os.environ.get("ROS_DISCOVERY_SERVER"):
        os.environ.setdefault("ROS_SUPER_CLIENT", "TRUE")
