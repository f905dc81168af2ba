# SPDX-License-Identifier: Apache-2.0
"""Relay between a legacy driver and a legacy robot: robot_server, topics, robot_bridge."""

import re

from processes import TIMEOUT_S, Process
from repository import CAPTURES
from robot_driver import RobotDriver
from robot_peer import RobotPeer
from ros_session import wait_until
from vanishing import kill

from drone_bridge.robot import codec

LISTENING = r"drivers on 127\.0\.0\.1:(\d+)"
LAST_UPDATE_BYTES = 9


def connected_driver(port):
    """Return a driver once the robot is connected behind the server."""

    def driver():
        connected = RobotDriver(port)
        connected.socket.settimeout(2.0)  # while the robot behind seems silent, keep-alives are not answered at all
        try:
            connected.settle()
            connected.socket.settimeout(TIMEOUT_S)
            return connected
        except (AssertionError, OSError):  # it was hung up on
            connected.close()
            return None

    return wait_until(driver, "a robot behind the server", period_s=0.05)


def test_captures_pass_through_the_whole_relay_until_the_server_is_killed():
    answer = (CAPTURES / "robot_to_driver.bin").read_bytes()
    said = (CAPTURES / "driver_to_robot.bin").read_bytes()
    wire = codec.DriverConnection()
    wire.receive_data(answer)
    packets = []
    while (event := wire.next_event()) is not codec.NEED_DATA:
        packets.append(event)
    peer = RobotPeer(sensors=packets[0], subsystems=packets[1])
    bridge = {"port": peer.port, "driver_name": "tester", "link_timeout": 30.0, "publish_odometry": False}
    server = {"port": 0, "discovery": False, "lists_from": "topics", "dialect": "robotd-1.2"}
    server |= {"command_timeout": 30.0, "driver_timeout": 0.0}
    remap = ["__ns:=/golden"]
    try:
        with (
            Process.node("robot_bridge", remap=remap, **bridge),
            Process.node("robot_server", remap=remap, **server) as server,
        ):
            driver = connected_driver(int(server.wait_for_line(LISTENING)[1]))
            driver.events.clear()
            driver.send_bytes(said[:-LAST_UPDATE_BYTES])
            driver.wait_for(codec.BindSuccess)
            peer.wait_for_speeds(2048, -2048)
            driver.send_bytes(said[-LAST_UPDATE_BYTES:])
            peer.wait_for_speeds(1024, -512)
            received = [packet for packet in driver.events if not _is_of_the_robot(packet)]
            assert received == [
                packet if not isinstance(packet, codec.LogMessage) else received[5] for packet in packets
            ]
            assert without_time(received[5]) == without_time(packets[5])
            # The server is killed: its driver's connection ends, and the bridge stops the robot.
            kill(server)
            assert driver.is_hung_up_on_within(TIMEOUT_S)
            peer.wait_for_speeds(0, 0)
            driver.close()
    finally:
        peer.close()


def _is_of_the_robot(packet):
    """Return whether a line is from the log of the robot behind the bridge."""
    return isinstance(packet, codec.LogMessage) and "[tester]" in packet.text


def without_time(packet):
    return re.fullmatch(r"\[\w{3} \d\d \d{4} \d\d:\d\d:\d\d [AP]M\] (.*)", packet.text)[1]
