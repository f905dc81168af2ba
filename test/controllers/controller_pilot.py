# SPDX-License-Identifier: Apache-2.0
"""Frames of stereo images as published by a bridge, and their drone."""

import array
import math

from sensor_msgs.msg import CameraInfo, Image, Imu

from drone_bridge.msg import DroneProperties
from drone_bridge.ros.time import time_from_seconds
from drone_bridge.testbed.vehicle.device.drone_state import DroneState
from drone_bridge.testbed.vehicle.emulator.world import RED, Sphere, StereoCamera

WIDTH, HEIGHT, ANGLE_OF_VIEW, BASELINE = 64, 48, 90.0, 0.25  # pixels, degrees, m
CAMERA = StereoCamera(WIDTH, HEIGHT, ANGLE_OF_VIEW, ANGLE_OF_VIEW, BASELINE)
#: The target 5 m ahead and 2 m to the left of a drone at the start, in the emulator's axes.
TARGET_M = math.hypot(5.0, 2.0)
TARGET = Sphere((-2.0, 0.0, -5.0), 0.5, RED)


def properties(**changes):
    """A drone; every field can be changed."""
    camera = {"image_width": WIDTH, "image_height": HEIGHT, "camera_separation": BASELINE}
    airframe = {"mass": 1.5, "gravity": 10.0, "drag": 0.2, "max_thrust": 25.0}
    rates = {f"max_{axis}_rate": 12.0 for axis in ("roll", "pitch", "yaw")}
    return DroneProperties(**{**camera, **airframe, **rates, **changes})


def messages(time_s, spheres=(), **changes):
    """The messages of one frame by topic, taken at the start; `left_image_raw={"width": 3}` changes a field."""
    left, right = (array.array("B", pixels.tobytes()) for pixels in CAMERA.render(DroneState.at_start(), spheres))
    focal = [size / 2 / math.tan(math.radians(ANGLE_OF_VIEW) / 2) for size in (WIDTH, HEIGHT)]
    centre = [(size - 1) / 2 for size in (WIDTH, HEIGHT)]
    k = [focal[0], 0.0, centre[0], 0.0, focal[1], centre[1], 0.0, 0.0, 1.0]
    frame = {}
    for side, pixels, shift in (("left", left, 0.0), ("right", right, -focal[0] * BASELINE)):
        p = [focal[0], 0.0, centre[0], shift, 0.0, focal[1], centre[1], 0.0, 0.0, 0.0, 1.0, 0.0]
        frame[f"{side}/image_raw"] = Image(width=WIDTH, height=HEIGHT, encoding="rgb8", step=3 * WIDTH, data=pixels)
        frame[f"{side}/camera_info"] = CameraInfo(width=WIDTH, height=HEIGHT, k=k, p=p)
    frame["imu/data"] = Imu(orientation_covariance=[1e-6, 0.0, 0.0, 0.0, 1e-6, 0.0, 0.0, 0.0, 1e-6])
    for topic, fields in changes.items():
        for name, value in fields.items():
            target = frame[{part.replace("/", "_"): part for part in frame}[topic]]
            if name in ("x", "y", "z", "w"):
                setattr(target.orientation, name, value)
            else:
                setattr(target, name, value)
    for message in frame.values():
        message.header.stamp = time_from_seconds(time_s)
    frame["imu/data"].header.frame_id = "d1/base_link"
    return frame
