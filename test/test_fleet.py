# SPDX-License-Identifier: Apache-2.0
"""Many bridges in one process: each vehicle its own, and one's trouble no other's."""

import contextlib
import os
import random
import signal
import socket
import threading

import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from processes import executable
from ros_session import wait_until
from sensor_msgs.msg import Imu

from drone_bridge.tools.fleet import member
from drone_bridge.tools.fleet.fleet import Fleet
from drone_bridge.tools.fleet.plan import load

NAMES = ("drone1", "drone2", "drone3")


def free_ports(count):
    """Return ports in a row that nobody has, the first of them."""
    for _ in range(100):
        first = random.SystemRandom().randrange(20_000, 30_000)
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
    raise AssertionError("no ports")


def fleet_file(tmp_path):
    file = tmp_path / "fleet.yaml"
    file.write_text(
        f"""
vehicles:
  drone[1-3]:
    protocol: testbed
    port: {free_ports(3)}
    parameters:
      hardware_id: number [1-3]
      attitude_layout: pose
    emulate: {{width: 32, height: 24, rate: 20, seed: "[1-3]"}}
"""
    )
    return file


@pytest.fixture
def fleet(tmp_path, monkeypatch):
    """Three bridges in this process, each with an emulated drone in one of its own."""
    monkeypatch.setattr(member, "FIRST_RESTART_S", 0.05)
    rclpy.init()
    fleet = Fleet(load(fleet_file(tmp_path)))
    try:
        assert fleet.start()
        fleet.prepare()
        yield fleet
    finally:
        fleet.leave()
        fleet.destroy()
        rclpy.shutdown()


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

    deactivate = ChangeState.Request(transition=Transition(id=Transition.TRANSITION_DEACTIVATE))
    assert ros.call(ChangeState, "/drone2/testbed_bridge/change_state", deactivate).success
    states = [
        ros.call(GetState, f"/{name}/testbed_bridge/get_state", GetState.Request()).current_state.id for name in NAMES
    ]
    active, inactive = State.PRIMARY_STATE_ACTIVE, State.PRIMARY_STATE_INACTIVE
    assert states == [active, inactive, active]
    wait_for_frames(fleet, "drone1", "drone3")


def test_a_bridge_that_raises_is_made_anew_and_the_others_go_on(fleet):
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


def test_a_bridge_that_is_kept_busy_keeps_no_other(fleet, ros):
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


def test_a_vehicle_that_is_gone_is_missed_by_its_own_bridge_alone(fleet):
    wait_for_frames(fleet, *NAMES)
    os.kill(fleet.emulators["drone2"].pid, signal.SIGKILL)
    wait_until(lambda: not fleet.members["drone2"].node.statistics.liveness.is_open, "the end of the link")
    wait_for_frames(fleet, "drone1", "drone3", more=10)
    assert fleet.members["drone2"].restarts == 0


def test_the_command_runs_until_a_signal_and_leaves_in_order(start_child, domain, tmp_path):
    process = start_child(executable("drone-bridge"), "fleet", fleet_file(tmp_path))
    process.wait_for_line("3 nodes are at work")
    for name in NAMES:
        process.wait_for_line(rf"\[{name} emulator\] connected to")
    assert process.stop() == 0, process.output
    for name in NAMES:
        assert process.count_lines(rf"\[{name} emulator\] ended: ") == 1, process.output
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


def test_a_file_that_is_refused_starts_nothing(start_child, tmp_path):
    (tmp_path / "fleet.yaml").write_text("vehicles:\n  a: {protocol: robot, prot: 1}\n")
    process = start_child(executable("drone-bridge"), "fleet", tmp_path / "fleet.yaml")
    assert process.wait() == 2
    assert "fleet.yaml:2: 'a' has no key 'prot'; it has protocol, namespace" in process.output
