# SPDX-License-Identifier: Apache-2.0
"""Seeing all topics behind a Fast DDS discovery server."""

import os


def ask_for_all_topics() -> None:
    """Have the discovery server, if there is one, announce every topic to this process. Call it before rclpy.init.

    A server announces to a client only the topics that the client itself uses, and to a super client all of them. This
    process becomes one unless ROS_SUPER_CLIENT says otherwise.
    """
    if os.environ.get("ROS_DISCOVERY_SERVER"):
        os.environ.setdefault("ROS_SUPER_CLIENT", "TRUE")
