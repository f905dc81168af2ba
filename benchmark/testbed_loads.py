# SPDX-License-Identifier: Apache-2.0
"""What is done with a drone while it is measured."""

import argparse
from enum import Enum


class Load(Enum):
    """What people do with a drone in flight. Its name is an option of the subscriber and of the baseline."""

    IMAGES = "images only"
    BESIDE_C = "images only, beside C"  # the baseline is a program in C
    BESIDE_ENDPOINT = "images only, beside ROS-TCP-Endpoint"
    EVERYTHING = "seven topics"  # those of images, cameras, attitude, odometry and tf
    COMMANDED = "commanded"  # all seven, and a velocity at 20 Hz
    CONTROLLED = "controlled"  # all seven, and a controller answers each frame


def load_named(text: str) -> Load:
    """Return the load of an argument on the command line."""
    if text not in Load.__members__:
        raise argparse.ArgumentTypeError(f"{text} is no load; it has to be one of {', '.join(Load.__members__)}.")
    return Load[text]
