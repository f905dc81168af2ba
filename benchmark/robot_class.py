# SPDX-License-Identifier: Apache-2.0
"""Compare the bridge of a robot in one class with a bare node: python benchmark/robot_class.py (see README.md)."""

import sys

from vehicles import Vehicle, compare

ROBOT_CLASS = Vehicle(
    name="robot_class",
    ports=("port",),
    options=(),
    topics=(
        "nav_msgs:Odometry:odom",
        "tf2_msgs:TFMessage:/tf",
        "sensor_msgs:BatteryState:battery_state",
        "std_msgs:Bool:motors",
        "std_msgs:Bool:stalled",
    ),
    loads=(("standing", ()), ("commanded at 20 Hz", ("--command",))),
    script="robot_class_program.py",
    cpu_at_most=1.3,
)

if __name__ == "__main__":
    sys.exit(compare(__doc__, ROBOT_CLASS))
