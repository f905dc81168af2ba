# SPDX-License-Identifier: Apache-2.0
"""Many bridges in one process: each vehicle its own, and one's trouble no other's."""

import contextlib
import itertools
import os
import signal
import threading
from pathlib import Path

import pytest
import rclpy
from composition import INTERRUPTED, launch
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Twist
from lifecycle_msgs.msg import State
from lifecycle_msgs.srv import GetState
from nav_msgs.msg import Odometry
from ports import free_ports
from processes import executable
from rclpy.qos import DurabilityPolicy, QoSProfile
from robot_peer import RobotPeer
from ros_session import wait_until
from sensor_msgs.msg import Imu
from std_msgs.msg import String

from drone_bridge.robot.codec import ConnectionClosed, SkidSteerUpdate
from drone_bridge.tools.fleet import member
from drone_bridge.tools.fleet.fleet import Fleet
from drone_bridge.tools.fleet.plan import load

NAMES = ("drone1", "drone2", "drone3")


def fleet_file(tmp_path):
    file = tmp_path / "fleet.yaml"
    file.write_text(
        f"""
vehicles:
  drone[1-3]:
    protocol: testbed
    port: {free_ports(3)[0]}
    parameters:
      hardware_id: number [1-3]
      attitude_layout: pose
    emulate: {{width: 32, height: 24, rate: 20, seed: "[1-3]"}}
"""
    )
    return file


@contextlib.contextmanager
def at_work(file, **options):
    """The fleet of a file in this process, and each emulated vehicle in one of its own."""
    rclpy.init()
    fleet = Fleet(load(file), **options)
    try:
        assert fleet.start()
        fleet.prepare()
        yield fleet
    finally:
        fleet.leave()
        fleet.destroy()
        rclpy.shutdown()


@pytest.fixture
def fleet(tmp_path, monkeypatch):
    """Three bridges, each with an emulated drone."""
    monkeypatch.setattr(member, "FIRST_RESTART_S", 0.05)
    with at_work(fleet_file(tmp_path)) as fleet:
        yield fleet


def frames(fleet, name):
    return fleet.members[name].node.statistics.counts["frames"]


def wait_for_frames(fleet, *names, more=5):
    """Wait until these vehicles have sent so many frames more."""
    before = {name: frames(fleet, name) for name in names}
    for name in names:
        wait_until(lambda name=name: frames(fleet, name) >= before[name] + more, f"frames of {name}")


def test_each_vehicle_has_its_own_topics_parameters_diagnostics_and_lifecycle(fleet, ros):
    diagnostics = ros.subscribe(DiagnosticArray, "/diagnostics")
    for name in NAMES:
        message = ros.subscribe(Imu, f"/{name}/imu/data").wait()
        assert message.header.frame_id.startswith(f"{name}/")
        diagnostics.wait(
            lambda report, name=name: (
                report.status[0].name == f"{name}/testbed_bridge: link"
                and report.status[0].hardware_id == f"number {name[-1]}"
            )
        )
    (result,) = ros.set_parameters("/drone2/testbed_bridge", command_timeout=0.125)
    assert result.successful
    timeouts = [ros.parameters(f"/{name}/testbed_bridge")["command_timeout"] for name in NAMES]
    assert timeouts == [0.5, 0.125, 0.5]

    ros.transition("/drone2/testbed_bridge", "deactivate")
    states = [
        ros.call(GetState, f"/{name}/testbed_bridge/get_state", GetState.Request()).current_state.id for name in NAMES
    ]
    active, inactive = State.PRIMARY_STATE_ACTIVE, State.PRIMARY_STATE_INACTIVE
    assert states == [active, inactive, active]
    wait_for_frames(fleet, "drone1", "drone3")


def test_a_bridge_that_raises_is_recreated_and_the_others_go_on(fleet, capfd):
    wait_for_frames(fleet, *NAMES)
    others = {name: fleet.members[name].node for name in ("drone1", "drone3")}
    failing = fleet.members["drone2"].node

    def fail():
        raise RuntimeError("as asked")

    failing.create_timer(0.01, fail)
    wait_until(lambda: fleet.members["drone2"].restarts == 1, "the bridge to be made anew")
    wait_until(lambda: fleet.members["drone2"].node not in (None, failing), "another node")
    wait_for_frames(fleet, *NAMES)
    assert {name: fleet.members[name].node for name in others} == others
    assert [fleet.members[name].restarts for name in NAMES] == [0, 1, 0]
    assert "already registered" not in capfd.readouterr().err  # what rcl says of two nodes of one name


def test_a_bridge_that_raises_leaves_its_vehicle_neutral_and_the_others_driven(ros, tmp_path, monkeypatch):
    monkeypatch.setattr(member, "FIRST_RESTART_S", 20.0)  # it does not come back and say zero then
    with contextlib.ExitStack() as stack:
        robots = [stack.enter_context(contextlib.closing(RobotPeer())) for _ in range(2)]
        entries = [f"  robot{number}: {{protocol: robot, port: {robot.port}}}" for number, robot in enumerate(robots)]
        (tmp_path / "fleet.yaml").write_text("\n".join(["vehicles:", *entries]))
        fleet = stack.enter_context(at_work(tmp_path / "fleet.yaml"))
        publishers = [ros.publisher(Twist, f"/robot{number}/cmd_vel") for number in range(2)]
        forward = Twist()
        paces = itertools.cycle((0.2, 0.3))  # a speed that stays is not said again

        def drive_until(condition, what):
            def command():
                forward.linear.x = next(paces)
                for publisher in publishers:
                    publisher.publish(forward)
                return condition()

            wait_until(command, what, period_s=0.05)

        def speeds(robot):
            return [packet.left for packet in list(robot.packets) if isinstance(packet, SkidSteerUpdate)]

        drive_until(lambda: all(any(speeds(robot)) for robot in robots), "both to drive")

        def fail():
            raise RuntimeError("as asked")

        fleet.members["robot0"].node.create_timer(0.01, fail)
        drive_until(lambda: fleet.members["robot0"].node is None, "the fault")
        robots[0].wait_for(ConnectionClosed)
        assert speeds(robots[0])[-1] == 0
        driven = len(speeds(robots[1]))
        drive_until(lambda: len(speeds(robots[1])) > driven + 10, "the other to drive on")
        assert all(speeds(robots[1])[driven:])


def test_every_protocol_has_a_place_in_a_fleet_its_controller_and_its_model(ros, tmp_path):
    first = free_ports(5)[0]
    (tmp_path / "fleet.yaml").write_text(
        f"""
vehicles:
  gui: {{protocol: dronegui, port: {first}, emulate: true, control: true, parameters: {{navdata_port: {first + 1}}}}}
  rover: {{protocol: robot, port: {first + 2}, emulate: true, control: {{pattern: circular}}}}
  submarine: {{protocol: simulator, port: {first + 3}, emulate: true}}
  lander: {{protocol: telemetry, port: {first + 4}, emulate: {{no-images: true}}}}
"""
    )
    with at_work(tmp_path / "fleet.yaml", models=True) as fleet:

        def counts(name):
            return fleet.members[name].node.statistics.counts

        wait_until(lambda: counts("gui")["packets"] > 5, "packets to the GUI")
        called = fleet.members["gui controller"].node.get_client_names_and_types_by_node("drone_controller", "/gui")
        assert {f"/gui/dronegui_bridge/{name}" for name in ("takeoff", "land", "hover")} <= set(dict(called))
        wait_until(lambda: fleet.members["rover"].node.statistics.liveness.is_open, "the robot")
        wait_until(lambda: counts("rover")["commands"] > 5, "what the rover's controller commands")
        assert ros.parameters("/rover/rover_controller")["pattern"] == "circular"
        message = ros.subscribe(Imu, "/lander/imu/data").wait()
        assert message.header.frame_id == "lander/base_link"
        odometry = ros.subscribe(Odometry, "/submarine/odom").wait()
        assert odometry.header.frame_id == "submarine/odom"
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        for name, model in (("gui", "drone"), ("rover", "rover"), ("submarine", "submarine"), ("lander", "drone")):
            description = ros.subscribe(String, f"/{name}/robot_description", latched).wait().data
            assert f'<robot name="{model}">' in description
            assert f'"{name}/base_link"' in description


def test_a_busy_bridge_does_not_delay_others(fleet, ros):
    """A callback that does not return: the others' services answer, and their frames go on."""
    released, wait_started = threading.Event(), threading.Event()

    def stall():
        wait_started.set()
        released.wait(60)

    timer = fleet.members["drone2"].node.create_timer(0.01, stall)
    assert wait_started.wait(60)
    try:
        wait_for_frames(fleet, *NAMES)  # the link of the one that is busy has a thread of its own, too
        ros.parameters("/drone1/testbed_bridge")
        ros.parameters("/drone3/testbed_bridge")
    finally:
        timer.cancel()
        released.set()


def emulator_of(vehicle):
    """The pid of the emulator on the port of a vehicle's bridge."""
    option = f"--port={vehicle.node.get_parameter('port').value}".encode()
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            if option in command.read_bytes().split(b"\0"):
                return int(command.parent.name)
    raise AssertionError(option)


def test_a_lost_vehicle_affects_only_its_own_bridge(fleet):
    wait_for_frames(fleet, *NAMES)
    os.kill(emulator_of(fleet.members["drone2"]), signal.SIGKILL)
    wait_until(lambda: not fleet.members["drone2"].node.statistics.liveness.is_open, "the end of the link")
    wait_for_frames(fleet, "drone1", "drone3", more=10)
    assert fleet.members["drone2"].restarts == 0


def test_the_command_runs_until_a_signal_and_leaves_in_order(start_child, domain, tmp_path):
    process = start_child(executable("drone-bridge"), "fleet", fleet_file(tmp_path))
    process.wait_for_line("3 nodes are running")
    for name in NAMES:
        process.wait_for_line(rf"\[{name} emulator\] connected to")
    assert process.stop() == 0, process.output
    for name in NAMES:
        assert process.count_lines(rf"\[{name} emulator\] ended: ") == 1, process.output
    assert "SIGTERM received" in process.output
    assert "Traceback" not in process.output


def test_a_fleet_that_is_stopped_while_it_starts_makes_no_more_nodes(tmp_path):
    """Many of them take long."""
    rclpy.init()
    stopping = threading.Event()
    vehicles = load(fleet_file(tmp_path))

    def one_after_the_other():
        yield vehicles[0]
        stopping.set()
        yield vehicles[1]

    fleet = Fleet(one_after_the_other(), stopping)
    try:
        assert fleet.start()
        fleet.prepare()
        assert list(fleet.members) == ["drone1"]
        assert fleet.members["drone1"].node.undeliverable() == "the bridge is not active."
    finally:
        fleet.leave()
        fleet.destroy()
        rclpy.shutdown()


def test_vehicles_are_left_once_and_nodes_destroyed_when_no_thread_is_left(monkeypatch):
    done = []
    for name in ("leave", "end_thread", "destroy"):
        monkeypatch.setattr(member.Member, name, lambda each, name=name: done.append((name, each)))
    fleet = Fleet([])
    fleet.members = {"a": "a", "b": "b"}
    fleet.leave()
    fleet.leave()  # as a program does that was signalled
    fleet.destroy()
    assert sorted(done[:2]) == [("leave", "a"), ("leave", "b")]
    assert done[2:] == [(name, each) for name in ("end_thread", "destroy") for each in "ab"]


def test_a_file_that_is_refused_starts_nothing(start_child, tmp_path):
    (tmp_path / "fleet.yaml").write_text("vehicles:\n  a: {protocol: robot, prot: 1}\n")
    process = start_child(executable("drone-bridge"), "fleet", tmp_path / "fleet.yaml")
    assert process.wait() == 2
    assert "fleet.yaml:2: 'a' has no key 'prot'; it has protocol, namespace" in process.output


def test_a_launch_file_whose_fleet_is_refused_ends_instead_of_starting_it_again(tmp_path):
    (tmp_path / "fleet.yaml").write_text("vehicles: 3")
    with launch("fleet.launch.xml", fleet_file=tmp_path / "fleet.yaml") as composition:
        assert composition.wait() == INTERRUPTED
        assert composition.count_lines(r"\[launch\] fleet-1 started") == 1


def test_the_demonstration_flies_a_fleet_by_its_launch_file_and_draws_it(start_child, tmp_path):
    process = start_child(executable("drone-bridge"), "demo", "fleet", "--drones", "2", "--folder", tmp_path)
    assert process.wait(240) == 0, process.output
    assert process.count_lines(r"drone[12] +target +[\d.]+ m away, reached after +[\d.]+ s simulated") == 2
    log = (tmp_path / "fleet" / "log.txt").read_text()
    assert "4 nodes are running" in log  # by fleet.launch.xml, as its first process
    assert "[fleet-1]" in log
    assert (tmp_path / "fleet" / "fleet.png").read_bytes().startswith(b"\x89PNG")
