# SPDX-License-Identifier: Apache-2.0
"""rover_controller as a process, between topics."""

from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from processes import Process


def test_the_rover_controller_drives_its_pattern_and_stops_at_its_end(ros):
    commands, told = ros.subscribe(Twist, "cmd_vel_goal"), ros.subscribe(Odometry, "rover_controller/odom")
    settings = {"pattern": "linear", "amplitude": 50.0, "speed": 0.8, "publish_odometry": True, "frame_prefix": "r1/"}
    with Process.node("rover_controller", **settings) as process:
        straight = commands.wait(lambda twist: twist.linear.x > 0.5)
        assert (straight.linear.x, straight.angular.z) == (0.8, 0.0)
        process.wait_for_line("Pattern linear: 0.8 m/s, 50 m.")
        own = told.wait(lambda odometry: odometry.pose.pose.position.x > 0.0)
        assert (own.header.frame_id, own.child_frame_id) == ("r1/odom", "r1/base_link")
        assert own.twist.twist.linear.x == 0.8
        for pattern, moves in (("stationary", False), ("linear", True)):
            (changed,) = ros.set_parameters("rover_controller", pattern=pattern)
            assert changed.successful, changed.reason
            commands.wait(lambda twist, moves=moves: (twist != Twist()) == moves)
        (refused,) = ros.set_parameters("rover_controller", pattern="spiral")
        assert "stationary, linear, circular, random, square" in refused.reason
        (refused,) = ros.set_parameters("rover_controller", seed=10)
        # It has no lifecycle, so only a restart helps.
        assert refused.reason.startswith("seed ")
        assert "restart" in refused.reason
        commands.clear()
        assert process.stop() == 0
    commands.wait(lambda twist: twist == Twist())
    assert not len(commands)
