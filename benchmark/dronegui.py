# SPDX-License-Identifier: Apache-2.0
"""Compare dronegui_bridge with a minimal script: python benchmark/dronegui.py (see README.md)."""

import sys

from dronegui_video import measure_video
from vehicles import Vehicle, compare

DRONE = Vehicle(
    name="dronegui",
    ports=("port", "navdata_port"),
    options=("--navdata-source-port=0", "--bootstrapped", "--no-video"),
    topics=(
        "drone_bridge:DroneGuiState:dronegui/state",
        "std_msgs:String:dronegui/navdata",
        "drone_bridge:DetectionArray:detections",
        "sensor_msgs:BatteryState:battery_state",
        "geometry_msgs:PointStamped:height",
        "sensor_msgs:Range:altitude",
        "geometry_msgs:TwistWithCovarianceStamped:velocity",
        "sensor_msgs:Imu:imu/data",
        "nav_msgs:Odometry:odom",
        "tf2_msgs:TFMessage:/tf",
    ),
    loads=(("hovering", ("--take-off",)), ("commanded at 20 Hz", ("--take-off", "--command"))),
)

if __name__ == "__main__":
    sys.exit(compare(__doc__, DRONE, measure_video))
