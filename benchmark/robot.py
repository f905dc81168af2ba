# SPDX-License-Identifier: Apache-2.0
"""Compare robot_bridge with a minimal script: python benchmark/robot.py (see README.md)."""

import sys

from vehicles import Vehicle, compare

ROBOT = Vehicle(
    name="robot",
    ports=("port",),
    options=("--no-discovery",),
    topics=(
        "sensor_msgs:BatteryState:battery_state",
        *(f"sensor_msgs:Temperature:temperature/{side}_motor" for side in ("left", "right")),
        *(
            f"drone_bridge:SensorValue:{kind}/{side}_motor"
            for kind in ("current", "motor_pwm")
            for side in ("left", "right")
        ),
        "nav_msgs:Odometry:odom",
        "tf2_msgs:TFMessage:/tf",
    ),
    loads=(("standing", ()), ("commanded at 20 Hz", ("--command",))),
)

if __name__ == "__main__":
    sys.exit(compare(__doc__, ROBOT))
