# SPDX-License-Identifier: Apache-2.0
"""A legacy driver and a legacy robot with ROS between them: robot_server, topics, robot_bridge."""

import contextlib
import re
import signal
from pathlib import Path

from ports import free_ports
from processes import TIMEOUT_S, Process, executable
from robot_driver import RobotDriver
from robot_peer import DRIVE, RobotPeer
from ros_session import wait_until
from vanishing import kill

from drone_bridge.robot import codec

CAPTURES = Path(__file__).parent / "captures"
SERVER = {"port": 0, "discovery": False, "lists_from": "topics", "sensor_period": 0.0, "command_timeout": 30.0}
LISTENING = r"Waiting for drivers on 127\.0\.0\.1:(\d+)"
LAST_UPDATE_BYTES = 9


class Relay:
    """A server and a bridge, joined by the topics of one namespace."""

    def __init__(self, server, bridge):
        self.server, self.bridge = server, bridge
        self.port = int(server.wait_for_line(LISTENING)[1])

    def connect(self, name=None):
        """Return a driver, as soon as the robot behind is there."""

        def driver():
            connected = RobotDriver(self.port, name)
            try:
                connected.settle()
                return connected
            except (AssertionError, OSError):  # it was hung up on
                connected.close()
                return None

        return wait_until(driver, "a robot behind the server", period_s=0.05)


@contextlib.contextmanager
def relaying(namespace, peer_port, link_timeout=30.0, **parameters):
    remap = [f"__ns:=/{namespace}"]
    bridge = {"port": peer_port, "driver_name": "tester", "link_timeout": link_timeout, "publish_odometry": False}
    with (
        Process.node("robot_bridge", remap=remap, **bridge) as bridge,
        Process.node("robot_server", remap=remap, **{**SERVER, "driver_timeout": 0.0, **parameters}) as server,
    ):
        yield Relay(server, bridge)


def bind(driver, number):
    """Bind as soon as the bridge has it."""

    def is_bound():
        driver.send(codec.BindSubsystem(number))
        return isinstance(driver.wait_for((codec.BindSuccess, codec.BindFailure)), codec.BindSuccess)

    wait_until(is_bound, f"subsystem {number}", period_s=0.05)


def test_golden_captures_go_through_the_whole_chain_until_the_server_is_killed():
    answer = (CAPTURES / "robot_to_driver.bin").read_bytes()
    said = (CAPTURES / "driver_to_robot.bin").read_bytes()
    wire = codec.DriverConnection()
    wire.receive_data(answer)
    packets = []
    while (event := wire.next_event()) is not codec.NEED_DATA:
        packets.append(event)
    peer = RobotPeer(sensors=packets[0], subsystems=packets[1])
    try:
        with relaying("golden", peer.port, dialect="robotd-1.2") as relay:
            driver = relay.connect()
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
            kill(relay.server)
            assert driver.is_hung_up_on_within(TIMEOUT_S)
            peer.wait_for_speeds(0, 0)
            driver.close()
    finally:
        peer.close()


def _is_of_the_robot(packet):
    """Whether it is a line of the log of the robot behind."""
    return isinstance(packet, codec.LogMessage) and "[tester]" in packet.text


def without_time(packet):
    return re.fullmatch(r"\[\w{3} \d\d \d{4} \d\d:\d\d:\d\d [AP]M\] (.*)", packet.text)[1]


def test_an_end_that_vanishes_is_gone_for_the_other(ros):
    peer = RobotPeer()

    def assert_dds_believes_in_the_bridge():
        assert "robot_bridge" in ros.node.get_node_names(), "DDS itself missed it first, after 20 s"

    try:
        with relaying("faults", peer.port, link_timeout=3.0) as relay:
            # A driver: the motors stop, and somebody else can have them.
            alice = relay.connect("alice")
            bind(alice, DRIVE)
            alice.send(codec.SkidSteerUpdate(DRIVE, 500, 500))
            peer.wait_for_speeds(500, 500)
            alice.vanish()
            ros.set_parameters("faults/robot_server", command_timeout=0.5, driver_timeout=1.0)
            peer.wait_for_speeds(0, 0)
            relay.server.wait_for_line("alice .*driver_timeout")
            ros.set_parameters("faults/robot_server", command_timeout=30.0, driver_timeout=0.0)
            bob = relay.connect("bob")
            bind(bob, DRIVE)
            # The robot: its bridge gives it up, and is given up with it.
            peer.vanish()
            assert bob.is_hung_up_on_within(TIMEOUT_S)
            # The bridge, stopped or killed: nobody says so, and DDS would believe in it for 20 s.
            carol = relay.connect("carol")
            relay.bridge.send(signal.SIGSTOP)
            assert carol.is_hung_up_on_within(TIMEOUT_S)
            assert_dds_believes_in_the_bridge()
            relay.bridge.send(signal.SIGCONT)
            dave = relay.connect("dave")
            bind(dave, DRIVE)
            kill(relay.bridge)
            assert dave.is_hung_up_on_within(TIMEOUT_S)
            assert_dds_believes_in_the_bridge()
            for driver in (alice, bob, carol, dave):
                driver.close()
    finally:
        peer.close()


# The launch file, and the scripted driver.


def test_one_command_starts_robot_bridge_server_and_driver(domain):
    ports = zip(("robot_server_port", "vehicle_port", "discovery_port"), free_ports(3), strict=True)
    arguments = (
        "relay:=true",
        "emulate:=true",
        "operate:=true",
        "namespace:=field",
        "operator_plan:=1s forward 0.5, 1s turn 1",
    )
    with Process(
        executable("drone-bridge"),
        "launch",
        "robot_server.launch.xml",
        *arguments,
        *map(":=".join, ((name, str(port)) for name, port in ports)),
    ) as launched:
        launched.wait_for_line(r"driving 1024 1024 \(1s forward 0.5\)")
        launched.wait_for_line(r"left motor: \S+ of full speed")
        launched.wait_for_line(r"driving -512 512 \(1s turn 1\)")
        launched.wait_for_line(r"stopping, and releasing subsystem 0")
        launched.wait_for_line(r"driver-\d+ ended")
        assert launched.stop(signal.SIGINT) in (0, 130)
        launched.wait_for_line(r"ended: .* at x (?!0\.0)\d+\.\d+ m")  # how far depends on who else needs the processor
