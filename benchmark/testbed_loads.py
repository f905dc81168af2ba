# SPDX-License-Identifier: Apache-2.0
"""Loads: activity of a drone during a measurement."""

import argparse
from enum import Enum


class Load(Enum):
    """Activity of a drone in flight. Its name is an option of the subscriber and of the baseline."""

    IMAGES = "images only"
    BESIDE_C = "images only, beside C"  # the baseline is a program in C
    BESIDE_ENDPOINT = "images only, beside ROS-TCP-Endpoint"
    EVERYTHING = "seven topics"  # topics of images, cameras, attitude, odometry and tf
    COMMANDED = "commanded"  # all seven, and a velocity at 20 Hz
    CONTROLLED = "controlled"  # all seven, and a controller that answers each frame


def load_named(text: str) -> Load:
    """Return the load of a command line argument."""
    if text not in Load.__members__:
        raise argparse.ArgumentTypeError(f"{text} is not a load of {', '.join(Load.__members__)}.")
    return Load[text]
