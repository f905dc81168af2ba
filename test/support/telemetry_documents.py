# SPDX-License-Identifier: Apache-2.0
"""Documents of a drone and a rover, with values controlled by tests."""

import base64
import copy

from drone_bridge.telemetry import codec

HOVER = {"thrust": 0.0, "pitch": 0.0, "roll": 0.0, "yaw": 0.0}
WIDTH, HEIGHT = 32, 24

DRONE = {
    "imu": {
        "orientation": {"roll": 0.1, "pitch": -0.2, "yaw": 0.3},
        "angular_velocity": {"x": 0.01, "y": 0.02, "z": 0.03},
        "linear_acceleration": {"x": 0.5, "y": -0.5, "z": 9.81},
    },
    "altimeter": {"altitude": 5.0, "vertical_velocity": -0.1},
    "velocity": {"x": 1.0, "y": -0.5, "z": -0.1},
    "landing_pad": {"relative_x": 0.5, "relative_y": -0.2, "distance": 4.5, "confidence": 0.85},
    "camera": {"width": WIDTH, "height": HEIGHT, "fov": 60.0, "image": None},
    "landed": False,
    "timestamp": 1.234,
}
#: A decoded document, without a picture.
TELEMETRY = codec.DroneTelemetry(
    imu=codec.Imu(codec.Orientation(0.1, 0.2, 0.3), codec.Vector(0.4, 0.5, 0.6), codec.Vector(0.7, 0.8, 9.81)),
    altimeter=codec.Altimeter(altitude=5.0, vertical_velocity=-0.1),
    velocity=codec.Vector(1.0, 2.0, 3.0),
    landing_pad=codec.LandingPad(0.5, -0.25, 4.5, 0.75),
    camera=codec.Camera(320, 240),
    landed=False,
    timestamp=1.5,
)
ROVER = {
    "position": {"x": 1.5, "y": 0.8, "z": 0.15},
    "velocity": {"x": 0.3, "y": 0.4, "z": 0.0},
    "pattern": "circular",
    "timestamp": 1.234,
}


def changed(document, **values):
    """Return a copy with other values at paths. Double underscores in names stand for dots."""
    document = copy.deepcopy(document)
    for path, value in values.items():
        *parents, name = path.split("__")
        inner = document
        for parent in parents:
            inner = inner[parent]
        inner[name] = value
    return document


def drone(image=None, **values):
    """Return a drone's document, optionally with an image."""
    text = None if image is None else base64.b64encode(image).decode()
    return changed(DRONE, camera__image=text, **values)


class Clock:
    """Increasing timestamps for repeated documents."""

    def __init__(self, start=100.0):
        self.time = start

    def next(self):
        self.time = round(self.time + 0.04, 6)
        return self.time
