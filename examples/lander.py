# SPDX-License-Identifier: Apache-2.0
"""The drone of the GPS-denied landing challenge in one class: JSON with pictures, and shares of tilt and thrust.

Positive thrust climbs. Other signs are those of REP 103. Velocity and landing pad are measured in level axes. The last
command stays in force. The same sender may report a rover. See docs/new_protocol.md.
"""

import json
import math
from base64 import b64decode, b64encode
from typing import Any

from drone_bridge.motion.quaternions import quaternion_from_euler, rotated_back
from drone_bridge.robot_class import BodyVelocity, Camera, Robot, Shares, Telemetry, TiltedDrone, Udp
from drone_bridge.wire.jpeg import read_size

TILT, RESTART_S, FOV = 0.5, 1.0, 60.0  # rad, s, degrees
AXES, ANGLES = ("x", "y", "z"), ("roll", "pitch", "yaw")
PAD = "relative_x", "relative_y", "distance", "confidence"


def numbers(fields: dict[str, Any], names: tuple[str, ...]) -> list[float]:
    """Return fields as numbers."""
    return [float(fields[name]) for name in names]


def named(names: tuple[str, ...], values: Any) -> dict[str, float]:
    """Return numbers as fields."""
    return dict(zip(names, values, strict=True))


class Lander(Robot):
    """Drone that waits on its port."""

    name, summary = "lander", "a drone without GPS above a rover"
    control = Udp(5555)
    drone, hovers = TiltedDrone(max_tilt=TILT, max_climb=2.5, max_yaw_rate=TILT, climb_lag=0.5), False
    rate = report_rate = 25.0
    link_timeout_s, robot_stops_after_s, reckons = 1.0, None, True
    camera = Camera("jpeg")
    latched = "landed", "rover/pattern"
    topics = (
        *("odom", "height", "velocity", "imu/data", "flying", "landed: std_msgs/Bool"),
        *("vertical_velocity: geometry_msgs/TwistWithCovarianceStamped", "landing_pad: drone_bridge/LandingPad"),
        *("camera/camera_info: sensor_msgs/CameraInfo", "rover/odom: nav_msgs/Odometry"),
        "rover/pattern: std_msgs/String",
    )

    def __init__(self) -> None:
        self.newest_s = -math.inf

    def encode_shares(self, shares: Shares) -> bytes:
        tilts = named(("pitch", "roll", "yaw"), (TILT * each for each in (shares.pitch, shares.roll, shares.yaw)))
        return json.dumps({"thrust": shares.thrust, **tilts}).encode()

    def decode_report(self, packet: bytes) -> Telemetry | None:
        told = json.loads(packet)
        if "imu" not in told:
            return Telemetry(extra=rover(told))
        time_s = told.get("timestamp")
        if time_s is not None and self.newest_s - RESTART_S <= time_s < self.newest_s:
            return None  # overtaken
        self.newest_s = self.newest_s if time_s is None else time_s
        imu, altimeter, landed = told["imu"], told["altimeter"], told.get("landed")
        roll, pitch, yaw = numbers(imu["orientation"], ANGLES)
        acceleration = imu.get("linear_acceleration")
        image = b64decode(told["camera"].get("image") or "", validate=True) or None
        return Telemetry(
            yaw=yaw,
            roll=roll,
            pitch=pitch,
            rates=tuple(numbers(imu["angular_velocity"], AXES)),
            acceleration=tuple(numbers(acceleration, AXES)) if acceleration else None,
            velocity=BodyVelocity(*numbers(told["velocity"], AXES)),
            height=float(altimeter["altitude"]),
            climb=float(altimeter["vertical_velocity"]),
            is_flying=None if landed is None else not landed,
            time_s=time_s,
            image=image,
            extra=messages(told, image),
        )

    # The drone's end, for the emulator, the server and the tests:

    def decode_command(self, packet: bytes) -> Shares | None:
        told = json.loads(packet)
        if "thrust" not in told:
            return None  # a rover to follow
        thrust, pitch, roll, yaw = numbers(told, ("thrust", "pitch", "roll", "yaw"))
        return Shares(thrust, pitch / TILT, roll / TILT, yaw / TILT)

    def encode_report(self, t: Telemetry) -> bytes:
        roll, pitch, v = t.roll or 0.0, t.pitch or 0.0, t.velocity or BodyVelocity()
        rates = t.rates or rotated_back(quaternion_from_euler(roll, pitch, 0.0), *v.angular)
        is_jpeg, pad = isinstance(t.image, bytes), t.extra.get("landing_pad")
        width, height = read_size(t.image) if is_jpeg else (320, 240)
        imu = {"orientation": named(ANGLES, (roll, pitch, t.yaw or 0.0)), "angular_velocity": named(AXES, rates)}
        seen = (pad.offset_x, pad.offset_y, pad.distance, pad.confidence) if pad and pad.detected else None
        told = {
            "imu": imu | {"linear_acceleration": t.acceleration and named(AXES, t.acceleration)},
            "altimeter": {"altitude": t.height or 0.0, "vertical_velocity": v.up if t.climb is None else t.climb},
            "velocity": named(AXES, v.linear),
            "landing_pad": seen and named(PAD, seen),
            "camera": {"width": width, "height": height, "fov": FOV}
            | {"image": b64encode(t.image).decode() if is_jpeg else None},
            "timestamp": t.time_s,
        }
        return json.dumps(told if t.is_flying is None else told | {"landed": not t.is_flying}).encode()


class ListeningLander(Lander):
    """Such a drone that sends first, to a port of ours."""

    name, control = "listening_lander", Udp(5555, listen=True)


def messages(told: dict[str, Any], image: bytes | None) -> dict[str, Any]:
    """Return messages of the drone's own topics."""
    from geometry_msgs.msg import TwistWithCovarianceStamped  # only the bridge has ROS
    from std_msgs.msg import Bool

    from drone_bridge.msg import LandingPad
    from drone_bridge.ros.topics.covariances import UNKNOWN_VARIANCE, covariance_from_diagonal
    from drone_bridge.ros.topics.images import pinhole_camera_info

    pad, climb = LandingPad(), TwistWithCovarianceStamped()
    pad.header.frame_id, climb.header.frame_id = "base_stabilized", "base_footprint"
    pad.detected = bool(seen := told["landing_pad"])
    pad.offset_x, pad.offset_y, pad.distance, pad.confidence = numbers(seen, PAD) if seen else [math.nan] * 4
    climb.twist.twist.linear.z = float(told["altimeter"]["vertical_velocity"])
    variances = [UNKNOWN_VARIANCE, UNKNOWN_VARIANCE, 2.5e-3, *[UNKNOWN_VARIANCE] * 3]
    climb.twist.covariance = covariance_from_diagonal(variances)
    found: dict[str, Any] = {"landing_pad": pad, "vertical_velocity": climb}
    if image:
        width, height = read_size(image)
        focal = width / 2 / math.tan(math.radians(told["camera"].get("fov") or FOV) / 2)
        found["camera/camera_info"] = pinhole_camera_info(
            width, height, focal_x=focal, focal_y=focal, frame_id="camera_optical_frame"
        )
    return found if told.get("landed") is None else found | {"landed": Bool(data=bool(told["landed"]))}


def rover(told: dict[str, Any]) -> dict[str, Any]:
    """Return messages of the rover's topics."""
    from nav_msgs.msg import Odometry
    from std_msgs.msg import String

    odometry = Odometry(child_frame_id="rover/base_link")
    odometry.header.frame_id = "map"
    place, velocity = odometry.pose.pose.position, odometry.twist.twist.linear
    place.x, place.y, place.z = numbers(told["position"], AXES)
    velocity.x, velocity.y, velocity.z = numbers(told["velocity"], AXES)
    return {"rover/odom": odometry, "rover/pattern": String(data=str(told["pattern"])[:64])}
