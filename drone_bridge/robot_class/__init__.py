# SPDX-License-Identifier: Apache-2.0
"""Your own robot in one class: see Robot, and docs/new_protocol.md. Importing this does not need ROS."""

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.measurement import Picture
from drone_bridge.motion.tilted_drone import Shares, TiltedDrone
from drone_bridge.robot_class.robot import Answer, Meaning, Move, Refusal, Request, Robot, Step, Telemetry
from drone_bridge.robot_class.transports import Camera, Delimited, Lidar, Packets, Serial, Tcp, Udp
from drone_bridge.robot_class.wheels import Wheels

__all__ = ["Answer", "BodyVelocity", "Camera", "Delimited", "Lidar", "Meaning", "Move", "Packets", "Picture", "Refusal"]
__all__ += ["Request", "Robot", "Serial", "Shares", "Step", "Tcp", "Telemetry", "TiltedDrone", "Udp", "Wheels"]
