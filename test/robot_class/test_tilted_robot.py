# SPDX-License-Identifier: Apache-2.0
"""A drone in one class that is steered by tilt: by its client's session, against its simulated body."""

import math

import pytest
from limited_vehicle import LimitedVehicle
from robot_class_talk import ClientTalk, OperatorParameters
from session_talk import sent

from drone_bridge.kind import Side
from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.limits import LimitParameters
from drone_bridge.robot_class import Robot, Shares, Telemetry, TiltedDrone, Udp
from drone_bridge.robot_class.client_sender import SENT
from drone_bridge.robot_class.connection import commands, conversation
from drone_bridge.robot_class.robot import has_last_words
from drone_bridge.robot_class.vehicle.body import EmulatedBody
from drone_bridge.robot_class.vehicle.robot_session import RobotClassVehicleSession
from drone_bridge.session.arbiter import Arrival
from drone_bridge.session.feedback import Feedback
from drone_bridge.session.node_parameters import NodeParameters
from drone_bridge.session.session import LastWords, Publish
from drone_bridge.session.tilt_pilot import ESTIMATED, TiltPilot

STEP_S = 0.02
NEUTRAL = b"steer 0 0 0 0"


class Kestrel(Robot):
    """Drone by tilt, on datagrams."""

    name, control = "kestrel_by_tilt", Udp(1)
    drone = TiltedDrone(max_tilt=0.3, max_climb=1.0, max_yaw_rate=1.5)

    def encode_shares(self, shares):
        return b"steer %g %g %g %g" % shares

    def decode_report(self, packet):
        yaw, forward, left, up, height, roll, pitch = map(float, packet.split())
        velocity = BodyVelocity(forward, left, up)
        return Telemetry(yaw=yaw, velocity=velocity, height=height, roll=roll, pitch=pitch)

    def decode_command(self, packet):
        return Shares(*map(float, packet.split()[1:]))

    def encode_report(self, t):
        v = t.velocity
        return b"%g %g %g %g %g %g %g" % (t.yaw, v.forward, v.left, v.up, t.height, t.roll, t.pitch)


class Kite(Kestrel):
    """One that drifts by itself."""

    name, hovers = "kite_by_tilt", False


class Flight(ClientTalk):
    """Session and body. `lie(telemetry)` returns what the drone reports."""

    def __init__(self, robot=Kestrel):
        self.vehicle, self.body = LimitedVehicle(lambda: self.now_s, sinks=True), EmulatedBody(robot)
        self.lie = lambda telemetry: telemetry
        self.body.begin_in_the_air()
        self.body.z, self.end = 10.0, robot()
        arbiter = self.vehicle.arbiter
        arbiter.within_maxima = robot.drone.within_maxima
        self.pilot = TiltPilot(arbiter, robot.drone, hovers=robot.hovers)
        feedback = Feedback(self.vehicle.observed, arbiter.limits, self.pilot)
        super().__init__(robot, arbiter, parameters=OperatorParameters(rate=50.0), feedback=feedback, pilot=self.pilot)
        self.connect()

    def fly(self, seconds, velocity=None):
        """Return the session's actions while a velocity is commanded."""
        actions = []
        for _ in range(round(seconds / STEP_S)):
            self.body.step(STEP_S)
            actions += self.hear(self.end.encode_report(self.lie(self.body.telemetry())))
            if velocity:
                self.vehicle.arbiter.put(Arrival(velocity, self.now_s))
            actions += self.run(STEP_S)
            for each in sent(actions[-3:]):
                self.body.wanted = self.end.decode_command(each.data)
        return actions


@pytest.mark.parametrize("robot", [Kestrel, Kite])
@pytest.mark.parametrize("wanted", [BodyVelocity(1.0), BodyVelocity(left=-0.8, up=0.4), BodyVelocity(0.5, turn=0.5)])
def test_velocities_are_flown_by_tilt_and_the_drone_is_believed(robot, wanted):
    flight = Flight(robot)
    flight.fly(6.0, wanted)
    velocity, here = flight.body.velocity, flight.vehicle.observed.newest
    assert (velocity.forward, velocity.left, velocity.up) == pytest.approx(wanted.linear, abs=0.1)
    assert velocity.turn == pytest.approx(wanted.turn, abs=0.1)
    assert flight.pilot.doubts == []
    assert here.position[2] == pytest.approx(flight.body.z, abs=0.1), "limits have the reports, too"
    flight.fly(4.0)
    assert math.hypot(*flight.body.velocity.linear) < 0.1, "it stops, as no command is left"


def test_drone_with_wrong_speed_reports_is_doubted_and_limits_are_blind():
    flight = Flight()
    flight.fly(3.0, BodyVelocity(1.0))
    stuck = flight.body.telemetry().velocity
    flight.lie = lambda t: Telemetry(
        yaw=t.yaw, velocity=BodyVelocity(-2.0 * stuck.forward), height=t.height, roll=t.roll, pitch=t.pitch
    )
    flight.fly(3.0, BodyVelocity(1.0))
    assert flight.pilot.doubts
    assert flight.vehicle.observed.newest.is_doubted


def test_velocities_are_flown_by_a_noted_estimate_without_reports():
    flight = Flight()
    flight.vehicle.arbiter.limits.parameters = LimitParameters()
    flight.fly(1.0, BodyVelocity(1.0))
    flight.vehicle.arbiter.put(Arrival(BodyVelocity(1.0), flight.now_s))
    noted = [each.is_ongoing for each in flight.run(0.4) if getattr(each, "counter", "") == ESTIMATED]
    assert noted
    assert all(noted)


def test_a_raw_command_is_sent_unchanged_and_neutral_is_zero_shares():
    flight = Flight()
    actions = flight.run(0.1)
    assert {each.data for each in sent(actions)} == {NEUTRAL}
    assert ESTIMATED not in {getattr(each, "counter", "") for each in actions}
    flight.hear(flight.end.encode_report(flight.body.telemetry()))
    flight.vehicle.arbiter.put(Arrival(Shares(0.5, 0.25, -0.25, 1.0), flight.now_s))
    (each,) = sent(flight.run(STEP_S))
    assert (each.data, each.if_sent) == (b"steer 0.5 0.25 -0.25 1", (SENT,))
    assert flight.session.last_words() == LastWords((NEUTRAL,))
    assert has_last_words(Kestrel)
    assert sent(flight.session.end(flight.now_s))[0].data == NEUTRAL


def test_the_robots_end_has_shares():
    read = commands(Kestrel)
    sent_commands = [each.message.data for each in conversation(Kestrel) if each.side is Side.OPERATOR]
    assert [is_neutral for data in sent_commands for is_neutral in read(data)] == [False, True]
    server = RobotClassVehicleSession(Kestrel, NodeParameters(), lambda: None)
    actions = server.receive(b"steer 0 2 0 0", ("127.0.0.1", 1), 10.0)
    assert Publish(Shares(pitch=1.0)) in actions, "within the full deflection"
    assert Publish(Shares()) in server.tick(11.0)


@pytest.mark.parametrize("robot", [Kestrel, Kite])
def test_tilt_without_a_turn_is_neutral_only_for_a_drone_that_does_not_hover(robot):
    read, tilted = commands(robot), b"steer 0.1 0.5 -0.5 "
    assert [*read(tilted + b"0.05"), *read(tilted + b"0.2"), *read(NEUTRAL)] == [not robot.hovers, False, True]


def test_a_drone_has_all_axes():
    assert (Kestrel.model, Kestrel.axes) == ("drone", ("x", "y", "z", "yaw"))
