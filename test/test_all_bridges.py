# SPDX-License-Identifier: Apache-2.0
"""all.launch.xml as it is run: every bridge at once, each with its emulator and its controller."""

from composition import launch
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from ports import free_port
from sensor_msgs.msg import BatteryState, Imu

from drone_bridge.kind import kinds
from drone_bridge.msg import CommandAxes, CommandRates
from drone_bridge.tools.demo.composition import ports_of

#: What each system publishes of its vehicle, and its controller's commands.
TOPICS = {
    "testbed": {"imu/data": Imu, "cmd_rates": CommandRates},
    "dronegui": {"odom": Odometry, "cmd_vel": Twist},
    "simulator": {"odom": Odometry, "cmd_vel": Twist},
    "robot": {"battery_state": BatteryState, "cmd_vel": Twist},
    "landing": {"imu/data": Imu, "cmd_axes": CommandAxes},
}


def test_all_bridges_together_bring_their_topics(ros):
    assert TOPICS.keys() == {kind.launch_file.removesuffix(".launch.xml") for kind in kinds().values()}
    inboxes = {
        f"/{system}/{topic}": ros.subscribe(kind, f"/{system}/{topic}")
        for system, topics in TOPICS.items()
        for topic, kind in topics.items()
    }
    with launch("all.launch.xml", **{name: free_port() for name in ports_of("all.launch.xml")}):
        for name, inbox in inboxes.items():
            print(name)
            inbox.wait()
