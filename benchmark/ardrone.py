# SPDX-License-Identifier: Apache-2.0
"""Compare ardrone_bridge with a minimal script: python benchmark/ardrone.py (see README.md)."""

import sys

from ardrone_video import TOPICS, measure_video
from vehicles import Vehicle, compare

DRONE = Vehicle(
    name="ardrone",
    ports=("port", "navdata_port", "control_port", "video_port"),
    options=("--bootstrapped", "--in-the-air"),
    topics=TOPICS,
    loads=(("hovering", ()), ("commanded at 20 Hz", ("--command",))),
    parameters=(("navdata", "full"),),
)

if __name__ == "__main__":
    sys.exit(compare(__doc__, DRONE, measure_video))
