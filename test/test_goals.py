# SPDX-License-Identifier: Apache-2.0
"""Goals of rover_controller as a process, in front of a bridge: what a robot hears of them."""

from goal_client import Goals, pose_at
from processes import Process
from robot_peer import RobotPeer

from drone_bridge.robot.codec import SkidSteerUpdate


def drives(packet):
    return isinstance(packet, SkidSteerUpdate) and (packet.left or packet.right)


def stands(packet):
    return isinstance(packet, SkidSteerUpdate) and not packet.left and not packet.right


def test_a_goal_takes_the_place_of_a_pattern_and_after_cancel_and_stop_the_wire_stays_neutral(ros, closing):
    """For longer than a command is in force, as a robot hears something twice a second."""
    peer, goals = closing(RobotPeer()), Goals(ros)

    def assert_stands():
        peer.received.wait(stands)
        assert not any(drives(peer.received.wait()) for _ in range(4))

    with Process.node("robot_bridge", port=peer.port), Process.node("rover_controller", pattern="circular"):
        peer.received.wait(drives)
        sent = goals.send("go_to", pose=pose_at(1000, 0))
        sent.feedback.wait(lambda feedback: not feedback.waiting_for)
        sent.cancel()
        assert sent.end() == ("canceled", "Canceled.")
        assert ros.parameters("rover_controller")["pattern"] == "stationary"
        assert_stands()
        sent = goals.send("go_to", pose=pose_at(1000, 0))
        peer.received.wait(drives)
        assert ros.switch("robot_bridge/hold", True).success
        end, message = sent.end()
        assert (end, message.partition(":")[0]) == ("aborted", "The vehicle is held")
        assert_stands()
