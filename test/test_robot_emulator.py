# SPDX-License-Identifier: Apache-2.0
"""The emulated robot as its drivers meet it: a process, its output, its exit code, what it says on the wire."""

import socket
import sys

import pytest
from processes import TIMEOUT_S, Process, when_listening
from robot_driver import RobotDriver
from ros_session import wait_until

from drone_bridge.robot import codec
from drone_bridge.wire.events import RemoteProtocolError

# A driver whose test is held up is not to be taken for silent.
COMMAND = (
    *(sys.executable, "-m", "drone_bridge.robot.emulator", "--port", 0, "--discovery-port", 0),
    *("--silence-timeout", 0),
)
TRACKS, LIGHT = 0, 1
ROBOTD = ("--dialect", "robotd-1.2")


@pytest.fixture
def emulate(start_child):
    return lambda *arguments: when_listening(start_child(*COMMAND, "--verbose", *arguments))


@pytest.fixture(scope="module")
def shared():
    """A robot for all tests that need no special one; its readings come rarely."""
    with Process(*COMMAND, "--verbose", "--sensor-period", 60) as child:
        yield when_listening(child)


@pytest.fixture
def robot(shared):
    """The shared robot, whose output starts over. Its former drivers are gone."""
    with RobotDriver(shared.port) as driver:
        wait_until(lambda: not any(subsystem.driver for subsystem in driver.list_subsystems()), "a free robot")
    # Who came first is not always the first one to be reported as gone.
    wait_until(lambda: shared.count_lines("^connected to ") == shared.count_lines(" is gone: "), "nobody connected")
    shared.lines.clear()
    return shared


@pytest.fixture
def connect(closing):
    return lambda emulator, name=None, **options: closing(RobotDriver(emulator.port, name, **options))


# What it answers.


def test_nothing_is_sent_on_connect_and_a_query_is_answered_in_robotd_s_order(robot, connect):
    driver = connect(robot)
    sensors, subsystems, firmware = driver.query()
    assert [type(event) for event in driver.events] == [codec.SensorInfo, codec.SubsystemInfo, codec.FirmwareInfo]
    assert sensors.layout is codec.SensorLayout.DOCUMENT
    assert sensors.sensors[0].full_voltage_mv == 12_600
    assert sensors.sensors[0].value == pytest.approx(12_590, abs=5)  # under the load of the electronics
    assert [(s.type, s.name) for s in sensors.sensors[1:4]] == [(2, "left motor"), (3, "left motor"), (4, "left motor")]
    assert subsystems == codec.SubsystemInfo(
        (
            codec.Subsystem(1, "tracks", "", codec.MotorSensors(0, 1, 2, 3), codec.MotorSensors(0, 4, 5, 6)),
            codec.Subsystem(2, "headlight", ""),
        )
    )
    assert firmware == codec.FirmwareInfo("emulator", "1", 2)


def test_a_bind_is_announced_to_all_then_logged_then_granted(robot, connect):
    alice, bob = connect(robot, "alice"), connect(robot, "bob")
    bob.settle()
    bob.events.clear()
    alice.bind(LIGHT)
    bound, log, success = alice.events
    assert bound == codec.SubsystemBound(LIGHT, "alice")
    assert log.text.endswith("[alice] bound subsystem 1")
    assert success == codec.BindSuccess(LIGHT)
    bob.wait_for(codec.LogMessage)
    assert bob.events == [bound, log]
    assert bob.query()[1].subsystems[LIGHT].driver == "alice"


def test_a_subsystem_has_one_driver_at_a_time(robot, connect):
    alice, bob = connect(robot, "alice"), connect(robot, "bob")
    alice.bind(TRACKS)
    bob.send(codec.BindSubsystem(TRACKS), codec.SkidSteerUpdate(TRACKS, -2048, -2048), codec.UnbindSubsystem(TRACKS))
    assert bob.wait_for(codec.BindFailure) == codec.BindFailure(TRACKS)
    bob.settle()
    alice.send(codec.SkidSteerUpdate(TRACKS, 100, 100))
    robot.wait_for_line("motors 100 100")
    assert not robot.count_lines("motors -2048")
    alice.bind(TRACKS)  # once more does no harm
    alice.send(codec.UnbindSubsystem(TRACKS))
    robot.wait_for_line("motors stopped: alice has unbound them")
    assert bob.wait_for(codec.SubsystemBound, lambda event: not event.driver) == codec.SubsystemBound(TRACKS, "")
    bob.bind(TRACKS)


def test_readings_come_by_themselves_and_follow_the_load(emulate, connect):
    emulator = emulate("--sensor-period", "0.05", "--capacity", "0.001")
    driver = connect(emulator, "alice")
    at_rest = driver.wait_for(codec.SensorUpdate)
    assert [reading.sensor for reading in at_rest.readings] == list(range(7))
    driver.bind(TRACKS)
    driver.send(codec.SkidSteerUpdate(TRACKS, 2048, -2048))
    warm = driver.wait_for(codec.SensorUpdate, lambda update: update.readings[1].value > at_rest.readings[1].value)
    voltage, _, left_current, left_pwm, _, _, right_pwm = (reading.value for reading in warm.readings)
    assert voltage < at_rest.readings[0].value
    assert left_current > 1000
    assert (left_pwm, right_pwm) == (2048, -2048)


# Drivers that go.


def test_the_motors_stop_when_their_driver_vanishes(robot, connect):
    alice, bob = connect(robot, "alice"), connect(robot, "bob")
    alice.bind(TRACKS)
    alice.send(codec.SkidSteerUpdate(TRACKS, 500, 500))
    robot.wait_for_line("motors 500 500")
    alice.close()
    robot.wait_for_line("motors stopped: alice has vanished")
    bob.wait_for(codec.SubsystemBound, lambda event: not event.driver)
    bob.bind(TRACKS)


def test_a_silent_driver_is_dropped_stopped_and_what_it_had_can_be_bound_again(emulate, connect):
    """A driver that hangs, or whose cable is pulled, closes no connection."""
    emulator = emulate("--silence-timeout", "0.2")
    alice = connect(emulator, "alice")
    alice.bind(TRACKS)
    alice.send(codec.SkidSteerUpdate(TRACKS, 500, 500))
    emulator.wait_for_line("motors stopped: alice is silent")
    emulator.wait_for_line("alice is gone: it has been silent for 0.2 s")
    connect(emulator, "alice").bind(TRACKS)


# robotd's dialect.


def test_robotd_hangs_up_on_a_bind_without_registration(emulate, connect):
    emulator = emulate(*ROBOTD)
    driver = connect(emulator)
    driver.send_bytes(bytes.fromhex("0002040000"))
    assert driver.next_event() == codec.ConnectionClosed()
    emulator.wait_for_line("is gone: it binds without having registered")


@pytest.mark.parametrize("is_orderly", [True, False], ids=["orderly", "crash"])
def test_robotd_refuses_every_bind_once_a_driver_has_gone(emulate, connect, is_orderly):
    """As the real program does: the binder becomes an owner who is not there."""
    emulator = emulate(*ROBOTD, "--subsystems", "tracks")
    alice, watcher = connect(emulator, "alice"), connect(emulator, "watcher")
    alice.bind(TRACKS)
    if is_orderly:
        alice.send(codec.SkidSteerUpdate(TRACKS, 0, 0), codec.UnbindSubsystem(TRACKS))
        alice.settle()
    watcher.settle()
    watcher.events.clear()
    alice.close()
    watcher.wait_for(codec.LogMessage, lambda log: log.text.endswith("[alice] lost connection"))
    bob = connect(emulator, "bob")
    assert bob.list_subsystems()[TRACKS].driver == ""  # freed, but not announced
    bob.send(codec.BindSubsystem(TRACKS))
    bob.wait_for(codec.LogMessage, lambda log: log.text.endswith("[bob] #<IOError: closed stream>"))
    with pytest.raises(AssertionError, match="closed after"):
        bob.wait_for(codec.BindSuccess)
    for name in ("bob", "carol"):
        driver = connect(emulator, name)
        assert driver.list_subsystems()[TRACKS].driver == "bob"
        driver.send(codec.BindSubsystem(TRACKS))
        assert driver.wait_for(codec.BindFailure) == codec.BindFailure(TRACKS)
        driver.settle()
    watcher.settle()
    assert not any(isinstance(event, codec.SubsystemBound) for event in watcher.events)


def test_robotd_frees_what_a_driver_once_had_whoever_has_it_when_that_driver_goes(emulate, connect):
    emulator = emulate(*ROBOTD)
    alice, bob = connect(emulator, "alice"), connect(emulator, "bob")
    alice.bind(TRACKS)
    alice.send(codec.UnbindSubsystem(TRACKS))
    alice.settle()
    bob.bind(TRACKS)
    alice.close()
    emulator.wait_for_line("alice is gone")
    assert bob.list_subsystems()[TRACKS].driver == ""
    bob.send(codec.SkidSteerUpdate(TRACKS, 5, 5), codec.KeepAlive(1))  # which is taken for something else from here on
    emulator.wait_for_line("bob updates what it has not bound: its bytes can't be read any further")


# Protocol 1, as the recorded NXT adapter speaks it.


def test_protocol_1_lists_batteries_and_sends_readings_without_ids_or_firmware(emulate, connect):
    driver = connect(emulate("--dialect", "protocol-1", "--sensor-period", "0.05"), "alice")
    assert driver.wait_for(codec.LogMessage) == codec.LogMessage("Hello, alice")
    driver.bind(TRACKS)
    subsystems = driver.list_subsystems()
    assert subsystems == (codec.Subsystem(1, "tracks", "alice"), codec.Subsystem(2, "headlight"))
    sensors = driver.wait_for(codec.SensorInfo)  # after the subsystems
    assert (sensors.layout, [s.name for s in sensors.sensors]) == (codec.SensorLayout.PROTOCOL_1, ["battery"])
    update = driver.wait_for(codec.SensorUpdate)
    assert (update.has_ids, len(update.readings)) == (False, 1)
    driver.send(codec.SkidSteerUpdate(TRACKS, 5, 5), codec.UnbindSubsystem(TRACKS))
    driver.settle()
    assert not any(isinstance(event, (codec.SubsystemBound, codec.FirmwareInfo)) for event in driver.events)


def test_protocol_1_lists_unasked_what_appears(emulate, connect):
    driver = connect(emulate("--dialect", "protocol-1", "--sensor-period", "0.05", "--appear-after", "1"), "alice")
    assert driver.list_subsystems() == ()
    assert len(driver.wait_for(codec.SubsystemInfo).subsystems) == 2
    driver.wait_for(codec.SensorInfo)
    driver.bind(TRACKS)


def test_a_peer_that_handles_one_packet_per_read_keeps_the_others_waiting(emulate, connect):
    driver = connect(emulate("--one-packet-per-read"))
    driver.send(codec.KeepAlive(1), codec.KeepAlive(2))
    assert driver.wait_for(codec.KeepAlive) == codec.KeepAlive(1)
    driver.send_bytes(b"\0")  # half of a header, and yet a reason to look again
    assert driver.wait_for(codec.KeepAlive) == codec.KeepAlive(2)


def test_a_peer_that_handles_one_packet_per_read_handles_all_of_them_at_the_end_of_the_stream(emulate, connect):
    """Whatever the driver has left behind moves it."""
    emulator = emulate("--one-packet-per-read")
    driver = connect(emulator)
    updates = (codec.SkidSteerUpdate(TRACKS, number, number) for number in range(1, 6))
    driver.send(codec.RegisterDriver("alice"), codec.BindSubsystem(TRACKS), *updates)
    driver.socket.shutdown(socket.SHUT_WR)
    for number in range(1, 6):
        emulator.wait_for_line(f"^motors {number} {number}$")
    emulator.wait_for_line("alice is gone: it has closed the connection")


# Discovery, faults, the program.


def test_it_answers_discovery(emulate):
    emulator = emulate("--name", "saber")
    port = int(emulator.wait_for_line(r"^discovery on 238\.160\.102\.2:(\d+) through 127\.0\.0\.1")[1])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(TIMEOUT_S)
        asking.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        for address in ("238.160.102.2", "127.0.0.1"):
            asking.sendto(b"find robots", (address, port))
            assert asking.recv(100) == b"saber"
    emulator.wait_for_line("answered 127.0.0.1:.* as saber")


@pytest.mark.parametrize(("fault", "error"), [("truncate@1", "closed inside"), ("garbage@1", "that is broken")])
def test_faults_break_the_first_connection_only(emulate, connect, fault, error):
    emulator = emulate("--fault", fault)
    driver = connect(emulator)
    driver.settle()
    driver.send(codec.KeepAlive(1))
    with pytest.raises(RemoteProtocolError, match=error):
        driver.next_event()
    again = connect(emulator)
    again.settle()
    again.settle(mark=1)


def test_a_robot_that_stalls_reads_at_once_what_was_sent_meanwhile(emulate, connect):
    """An adapter that handles one packet per read handles the first of it only."""
    emulator = emulate("--fault", "stall@1", "--stall", "1", "--one-packet-per-read")
    driver = connect(emulator)
    driver.settle()
    driver.send(codec.KeepAlive(1))
    emulator.wait_for_line("fault: stall")
    for number in (2, 3):
        driver.send(codec.KeepAlive(number))
    emulator.wait_for_line("goes on")
    assert [driver.wait_for(codec.KeepAlive).time_ms for _ in range(2)] == [1, 2]
    driver.socket.settimeout(0.1)
    with pytest.raises(TimeoutError):
        driver.wait_for(codec.KeepAlive)
