# SPDX-License-Identifier: Apache-2.0
"""Velocities as messages."""

from geometry_msgs.msg import Twist


def twist(forward=0.0, left=0.0, up=0.0, left_turn=0.0):
    message = Twist()
    message.linear.x, message.linear.y, message.linear.z = float(forward), float(left), float(up)
    message.angular.z = float(left_turn)
    return message
