# SPDX-License-Identifier: Apache-2.0
"""What a drone_controller listens to and says, for tests that play the bridge."""

import array
import math

from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_session import wait_until
from sensor_msgs.msg import CameraInfo, Image, Imu

from drone_bridge.msg import CommandRates, ControllerState, DroneProperties
from drone_bridge.ros.time import time_from_seconds
from drone_bridge.testbed.device.drone_state import DroneState
from drone_bridge.testbed.emulator.world import RED, Sphere, StereoCamera

WIDTH, HEIGHT, ANGLE_OF_VIEW, BASELINE = 64, 48, 90.0, 0.25  # pixels, degrees, m
STEP_S = 1 / 60
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
TYPES = {
    "left/image_raw": Image,
    "right/image_raw": Image,
    "left/camera_info": CameraInfo,
    "right/camera_info": CameraInfo,
    "imu/data": Imu,
}
CAMERA = StereoCamera(WIDTH, HEIGHT, ANGLE_OF_VIEW, ANGLE_OF_VIEW, BASELINE)
#: The target 5 m ahead and 2 m to the left of a drone at the start, in the emulator's axes.
TARGET_M = math.hypot(5.0, 2.0)
TARGET = Sphere((-2.0, 0.0, -5.0), 0.5, RED)


def properties(**changes):
    """A drone; every field can be changed."""
    fields = {
        "image_width": WIDTH,
        "image_height": HEIGHT,
        "camera_separation": BASELINE,
        "mass": 1.5,
        "gravity": 10.0,
        "drag": 0.2,
        "max_thrust": 25.0,
        "max_roll_rate": 12.0,
        "max_pitch_rate": 12.0,
        "max_yaw_rate": 12.0,
    }
    return DroneProperties(**{**fields, **changes})


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


def stamp_of(message):
    return message.header.stamp.sec, message.header.stamp.nanosec


class Pilot:
    """Publishes frames for a controller and hears what it says."""

    def __init__(self, ros, *, is_announced=True, **first_properties):
        """Announce a drone with these properties, or none."""
        self.commands = ros.subscribe(CommandRates, "cmd_rates")
        self.states = ros.subscribe(ControllerState, "drone_controller/state")
        self._publishers = {topic: ros.publisher(kind, topic) for topic, kind in TYPES.items()}
        if is_announced:
            self._properties = ros.publisher(DroneProperties, "drone_properties", LATCHED)
            self.announce(**first_properties)
        self.time_s = 1000.0

    def announce(self, **changes):
        self._properties.publish(properties(**changes))

    def publish(self, spheres=(), step_s=STEP_S, **changes):
        """Publish the next frame, and return its stamp."""
        self.time_s += step_s
        for topic, message in messages(self.time_s, spheres, **changes).items():
            self._publishers[topic].publish(message)
        return stamp_of(message)

    def publish_until(self, condition, what, spheres=(), **changes):
        """Publish the next frames until the condition holds."""

        def frame():
            self.publish(spheres, **changes)
            return condition()

        wait_until(frame, what, period_s=0.03)

    def state_after(self, spheres=(), wanted=lambda state: True, step_s=STEP_S, **changes):
        """Publish frames until the state of one is the wanted one: a reader may not have found its writer yet."""
        stamps, found = set(), []

        def frame():
            stamps.add(self.publish(spheres, step_s, **changes))
            while len(self.states):
                state = self.states.wait()
                if stamp_of(state) in stamps and wanted(state):
                    found.append(state)
            return found

        wait_until(frame, "the wanted state", period_s=0.03)
        return found[0]
