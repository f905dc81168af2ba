# SPDX-License-Identifier: Apache-2.0
"""Responses of the emulated robot in each dialect, without sockets and clocks."""

import pytest

from drone_bridge.robot import codec
from drone_bridge.robot.vehicle.device.control import RobotControl
from drone_bridge.robot.vehicle.device.dialects import FaultyRobotdControl, Protocol1Control, RobotdControl
from drone_bridge.robot.vehicle.device.drivers import Instant
from drone_bridge.robot.vehicle.device.served_driver import ServedDriver
from drone_bridge.robot.vehicle.emulator import SUBSYSTEMS, SimulatedRobot, TrackedRobot
from drone_bridge.wire.events import DisconnectPeerError

TRACKS, LIGHT = 0, 1
NOW = Instant(0.0, 1_800_000_000_000)
GOES = "it has closed the connection"


class Driver:
    """Driver of a RobotControl, with immediate delivery in both directions."""

    def __init__(self, control, name=None, **options):
        self.wire = codec.DriverConnection()
        self.served = ServedDriver(control, "peer", self.wire.receive_data, lambda: NOW, **options)
        if name:
            self.say(codec.RegisterDriver(name))

    def say(self, *packets):
        """Send packets in one read. Return the packets received since the last call."""
        self.served.receive_data(b"".join(map(self.wire.send, packets)))
        while self.served.handle_next():
            pass
        return self.heard()

    def heard(self):
        heard = []
        while (event := self.wire.next_event()) is not codec.NEED_DATA:
            heard.append(event)
        return heard

    def refused(self, *packets):
        """Send a packet on which the robot disconnects. Return the reason."""
        with pytest.raises(DisconnectPeerError) as error:
            self.say(*packets)
        self.served.leave(str(error.value))
        return str(error.value)

    def list_subsystems(self):
        return next(event for event in self.say(codec.QuerySubsystems()) if isinstance(event, codec.SubsystemInfo))


@pytest.fixture
def robot():
    return SimulatedRobot(TrackedRobot())


@pytest.fixture
def make_control(robot):
    return lambda kind=RobotControl: kind(robot, lambda line: None)


def speeds(robot):
    return robot.physics.left.setting, robot.physics.right.setting


# The specified dialect.


def test_nothing_is_sent_on_connect_and_queries_follow_robotd_order(make_control):
    driver = Driver(make_control())
    assert driver.heard() == []
    sensors, subsystems, firmware = driver.say(codec.QuerySubsystems())
    assert sensors.layout is codec.SensorLayout.DOCUMENT
    assert sensors.sensors[0].full_voltage_mv == 12_600
    assert sensors.sensors[0].value == pytest.approx(12_590, abs=5)  # under the load of the electronics
    assert [(s.type, s.name) for s in sensors.sensors[1:4]] == [(2, "left motor"), (3, "left motor"), (4, "left motor")]
    left, right = codec.MotorSensors(0, 1, 2, 3), codec.MotorSensors(0, 4, 5, 6)
    tracks, light = codec.Subsystem(1, "tracks", "", left, right), codec.Subsystem(2, "headlight", "")
    assert subsystems == codec.SubsystemInfo((tracks, light))
    assert isinstance(firmware, codec.FirmwareInfo)


def test_a_bind_is_announced_to_all_then_logged_then_granted(make_control):
    control = make_control()
    alice, bob = Driver(control, "alice"), Driver(control, "bob")
    bound, log, success = alice.say(codec.BindSubsystem(LIGHT))
    assert (bound, success) == (codec.SubsystemBound(LIGHT, "alice"), codec.BindSuccess(LIGHT))
    assert log.text.endswith("[alice] bound subsystem 1")
    assert bob.heard() == [bound, log]
    assert bob.list_subsystems().subsystems[LIGHT].driver == "alice"


def test_a_subsystem_has_one_driver_at_a_time(make_control, robot):
    control = make_control()
    alice, bob = Driver(control, "alice"), Driver(control, "bob")
    alice.say(codec.BindSubsystem(TRACKS))
    refused = bob.say(codec.BindSubsystem(TRACKS), codec.SkidSteerUpdate(TRACKS, -9, -9), codec.UnbindSubsystem(TRACKS))
    assert refused[-1] == codec.BindFailure(TRACKS)
    alice.say(codec.SkidSteerUpdate(TRACKS, 100, 100))
    assert speeds(robot) == (100, 100)
    assert alice.say(codec.BindSubsystem(TRACKS))[-1] == codec.BindSuccess(TRACKS)  # once more does no harm
    alice.say(codec.UnbindSubsystem(TRACKS))
    assert speeds(robot) == (0, 0)
    assert codec.SubsystemBound(TRACKS, "") in bob.heard()
    assert bob.say(codec.BindSubsystem(TRACKS))[-1] == codec.BindSuccess(TRACKS)


def test_readings_follow_the_load(make_control, robot):
    control = make_control()
    driver = Driver(control, "alice")
    control.send_readings(robot.readings())
    (at_rest,) = driver.heard()
    assert [reading.sensor for reading in at_rest.readings] == list(range(7))
    driver.say(codec.BindSubsystem(TRACKS), codec.SkidSteerUpdate(TRACKS, 2048, -2048))
    for _ in range(100):
        robot.physics.advance(0.05)
    control.send_readings(robot.readings())
    voltage, warmth, current, left_pwm, _, _, right_pwm = (reading.value for reading in driver.heard()[-1].readings)
    assert voltage < at_rest.readings[0].value
    assert warmth > at_rest.readings[1].value
    assert current > 1000
    assert (left_pwm, right_pwm) == (2048, -2048)


def test_with_one_packet_per_read_others_wait_until_the_end_of_the_stream(make_control, robot):
    """The packets that a disconnected driver left behind still move it."""
    driver = Driver(make_control(), reads_one_packet=True)
    assert driver.say(codec.KeepAlive(1), codec.KeepAlive(2)) == [codec.KeepAlive(1)]
    driver.served.receive_data(driver.wire.send(codec.RegisterDriver("alice")))  # a reason to look again
    assert driver.served.handle_next()
    assert not driver.served.handle_next()
    assert driver.heard() == [codec.KeepAlive(2)]
    driver.say(codec.BindSubsystem(TRACKS), codec.SkidSteerUpdate(TRACKS, 5, 5))
    assert speeds(robot) == (0, 0)
    driver.served.receive_eof()
    assert speeds(robot) == (5, 5)


def test_an_unencodable_packet_is_dropped_and_the_driver_kept(robot, monkeypatch):
    lines = []
    control = RobotControl(robot, lines.append)
    driver = Driver(control, "alice")
    monkeypatch.setattr(robot, "sensors", lambda: [codec.Sensor(codec.SensorType.BATTERY, "battery", 2**31, 1)])
    control.send_log("\ud800")
    assert driver.say(codec.QuerySubsystems(), codec.KeepAlive(1))[-1] == codec.KeepAlive(1)
    assert [line.partition(":")[0] for line in lines[-2:]] == ["LogMessage can't be sent", "SensorInfo can't be sent"]


# robotd, without its faults and with them.


@pytest.mark.parametrize("kind", [RobotdControl, FaultyRobotdControl])
def test_robotd_lists_whole_volts_and_sends_no_readings(make_control, robot, kind):
    control = make_control(kind)
    driver = Driver(control, "alice")
    info = driver.say(codec.QuerySubsystems())[0]
    assert info.layout is codec.SensorLayout.ROBOTD_1_2
    assert info.sensors[0] == codec.Sensor(codec.SensorType.BATTERY, "battery", full_voltage_mv=13_000)
    control.send_readings(robot.readings())
    assert driver.heard() == []


@pytest.mark.parametrize("kind", [RobotdControl, FaultyRobotdControl])
def test_only_robotd_disconnects_on_an_update_of_an_unknown_subsystem(make_control, kind):
    nothing = codec.OpaqueUpdate(7, bytes(4))
    assert "subsystem 7" in Driver(make_control(kind), "alice").refused(nothing)
    assert Driver(make_control(), "alice").say(nothing, codec.KeepAlive(1)) == [codec.KeepAlive(1)]


def test_robotd_disconnects_on_a_bind_without_registration(make_control):
    driver = Driver(make_control(FaultyRobotdControl))
    driver.served.receive_data(bytes.fromhex("0002040000"))
    with pytest.raises(DisconnectPeerError, match="registration"):
        driver.served.handle_next()


@pytest.mark.parametrize("is_orderly", [True, False], ids=["orderly", "crash"])
def test_robotd_refuses_every_bind_once_a_driver_has_disconnected(make_control, is_orderly):
    """As in the real program, the disconnected binder becomes the owner."""
    control = make_control(FaultyRobotdControl)
    alice, watcher = Driver(control, "alice"), Driver(control, "watcher")
    alice.say(codec.BindSubsystem(TRACKS))
    if is_orderly:
        alice.say(codec.SkidSteerUpdate(TRACKS, 0, 0), codec.UnbindSubsystem(TRACKS))
    watcher.heard()
    alice.served.leave(GOES)
    bob = Driver(control, "bob")
    assert bob.list_subsystems().subsystems[TRACKS].driver == ""  # freed, but not announced
    assert "another driver" in bob.refused(codec.BindSubsystem(TRACKS))
    assert [event.text.partition("] ")[2] for event in bob.heard()] == ["[bob] #<IOError: closed stream>"]
    carol = Driver(control, "carol")
    assert carol.list_subsystems().subsystems[TRACKS].driver == "bob"
    assert carol.say(codec.BindSubsystem(TRACKS)) == [codec.BindFailure(TRACKS)]
    assert {type(event) for event in watcher.heard()} == {codec.LogMessage}


def test_robotd_frees_former_subsystems_of_a_driver_even_if_rebound(make_control, robot):
    control = make_control(FaultyRobotdControl)
    alice, bob = Driver(control, "alice"), Driver(control, "bob")
    alice.say(codec.BindSubsystem(TRACKS), codec.UnbindSubsystem(TRACKS))
    assert bob.say(codec.BindSubsystem(TRACKS))[-1] == codec.BindSuccess(TRACKS)
    alice.served.leave(GOES)
    assert bob.list_subsystems().subsystems[TRACKS].driver == ""
    bob.heard()
    # From here on, its stream is desynchronized.
    assert bob.say(codec.SkidSteerUpdate(TRACKS, 5, 5), codec.KeepAlive(1)) == []
    assert speeds(robot) == (0, 0)


# Protocol 1, as recorded from an NXT adapter.


def test_protocol_1_lists_batteries_and_sends_readings_without_ids(make_control):
    control = make_control(Protocol1Control)
    driver = Driver(control)
    assert driver.say(codec.RegisterDriver("alice")) == [codec.LogMessage("Hello, alice")]
    bound = driver.say(codec.BindSubsystem(TRACKS))
    subsystems, sensors = driver.say(codec.QuerySubsystems())
    assert subsystems.subsystems == (codec.Subsystem(1, "tracks", "alice"), codec.Subsystem(2, "headlight"))
    assert (sensors.layout, [s.name for s in sensors.sensors]) == (codec.SensorLayout.PROTOCOL_1, ["battery"])
    control.send_readings()
    (update,) = driver.heard()
    assert (update.has_ids, len(update.readings)) == (False, 1)
    freed = driver.say(codec.SkidSteerUpdate(TRACKS, 5, 5), codec.UnbindSubsystem(TRACKS))
    assert not any(isinstance(event, codec.SubsystemBound) for event in (*bound, *freed))


def test_protocol_1_sends_changed_lists_without_a_query():
    physics = TrackedRobot()
    control = Protocol1Control(SimulatedRobot(physics, tuple(SUBSYSTEMS), appears_s=1.0), lambda line: None)
    driver = Driver(control, "alice")
    assert driver.list_subsystems().subsystems == ()
    driver.heard()
    control.send_readings()
    assert driver.heard() == []
    physics.advance(1.0)
    control.send_readings()
    subsystems, sensors, update = driver.heard()
    assert len(subsystems.subsystems) == 2
    assert [type(each) for each in (sensors, update)] == [codec.SensorInfo, codec.SensorUpdate]
    assert codec.BindSuccess(TRACKS) in driver.say(codec.BindSubsystem(TRACKS))
