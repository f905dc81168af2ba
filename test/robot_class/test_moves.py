# SPDX-License-Identifier: Apache-2.0
"""Steps of a robot's programs, at its end: judged by where the body is when they are answered."""

import math
from types import SimpleNamespace

import pytest
from own_robots import Pioneer, RoboMaster, Tello
from session_talk import SessionTalk, notes, published, sent

from drone_bridge.net.connector import Cancellation
from drone_bridge.robot_class import BodyVelocity, Telemetry
from drone_bridge.robot_class.vehicle import emulator
from drone_bridge.robot_class.vehicle.body import FALLS, FOLLOWS, LANDS, RISES, STANDS, EmulatedBody
from drone_bridge.robot_class.vehicle.robot_session import (
    UNSUPPORTED,
    RobotClassVehicleSession,
)
from drone_bridge.robots.pioneer import command, packet
from drone_bridge.session.node_parameters import NodeParameters
from drone_bridge.session.operator_command import OPERATORS_LOST

ONE, STEP_S = ("127.0.0.1", 8889), 0.02


class FlyingRobot(SessionTalk):
    """Emulated robot in the air, with its client. `told` replaces its telemetry."""

    def __init__(self, robot=Tello, told=None, *, is_body=True, timeout_s=15.0):
        self.body = EmulatedBody(robot)
        self.body.begin_in_the_air()
        telemetry, parameters = lambda: told or self.body.telemetry(), NodeParameters(command_timeout=timeout_s)
        super().__init__(RobotClassVehicleSession(robot, parameters, telemetry, is_body=is_body))
        self.session.connected(ONE, self.now_s)

    def take(self, actions):
        self.body.wanted = [self.body.wanted, *published(actions)][-1]
        return actions

    def hear(self, data):
        return self.take(list(self.session.receive(data, ONE, self.now_s)))

    def at(self, x, y):
        """Report a place. Return what is sent."""
        self.body.x, self.body.y = x, y
        return [each for each in sent(self.run(0.2)) if b"push" not in each.data]

    def until_answered(self, data):
        """Send a command. Return its answer, the time until then, and how far the body has turned."""
        answers, turned, begin_s = sent(self.hear(data)), 0.0, self.now_s
        while not answers and self.now_s < begin_s + 60:
            self.body.step(STEP_S)
            turned += STEP_S * self.body.velocity.turn
            answers = [each for each in sent(self.run(STEP_S)) if each.data[:2] in (b"ok", b"er")]
        return answers[0].data, self.now_s - begin_s, turned


WAYS = [
    (Tello, b"forward 50", (0.5, 0, 0), 0, 1.0), (Tello, b"back 300", (-3, 0, 0), 0, 1.0),
    (Tello, b"left 20", (0, 0.2, 0), 0, 1.0), (Tello, b"right 100", (0, -1, 0), 0, 1.0),
    (Tello, b"up 60", (0, 0, 0.6), 0, 1.0), (Tello, b"down 40", (0, 0, -0.4), 0, 1.0),
    (Tello, b"cw 90", (0, 0, 0), -90, 1.0), (Tello, b"ccw 720", (0, 0, 0), 720, 1.0),
    (Tello, b"go 50 -30 20 30", (0.5, -0.3, 0.2), 0, 0.3),
    (RoboMaster, b"chassis move x 1 y 0.5;", (1, -0.5, 0), 0, 0.5),
    (RoboMaster, b"chassis move x -0.5 z 450 vxy 2 vz 90;", (-0.5, 0, 0), -450, 2.0),
]  # fmt: skip


@pytest.mark.parametrize(("robot", "data", "way", "degrees", "speed"), WAYS)
def test_a_step_is_answered_where_it_ends(robot, data, way, degrees, speed):
    vehicle = FlyingRobot(robot)
    answer, seconds, turned = vehicle.until_answered(data)
    body, (x, y, z) = vehicle.body, way
    assert answer.rstrip(b";") == b"ok"
    assert math.dist((body.x, body.y, body.z), (x, y, 1 + z)) < 0.04
    assert turned == pytest.approx(math.radians(degrees), abs=0.04)
    assert seconds > math.hypot(*way) / speed
    assert body.wanted == BodyVelocity()


REFUSED = """
forward 19, forward 501, forward -50, forward, forward x, forward 50 50, cw 0, cw 3601, go 10 10 10 50, go 50 0 0 5,
go 50 0 0, go 50 0 0 50 m1, flip l, curve 1 2 3 4 5 6 10, speed 9, speed 101, mon, motoron, streamon, unknown?,
chassis move x 6;, chassis move x nan;, chassis move x 1 vxy 0;, chassis move x;, chassis move z 1801;, stream on;,
chassis speed x 4;, chassis wheel w1 1;, chassis wheel w1 1 w2 1 w3 1 w4 1001;, chassis push position;, led control;,
chassis push position on pfreq 50;, chassis push slope on;, robot mode gimbal_lead;, gimbal move p 10;
""".replace("\n", " ").strip()


@pytest.mark.parametrize("text", REFUSED.split(", "))
def test_what_is_not_executed_is_an_error_at_once(text):
    robot = RoboMaster if text.endswith(";") else Tello
    answer, seconds, _ = FlyingRobot(robot).until_answered(text.encode())
    assert (answer[:5], seconds) == (b"error", 0.0)


@pytest.mark.parametrize(
    ("data", "answers"), [(b"rc 0 0 0 0", [b"error another command came"]), (b"land", [b"error another command came"]),
                          (b"stop", [b"error another command came", b"ok"]), (b"cw 90", [b"error it is moving"])],
)  # fmt: skip
def test_a_command_ends_a_step_and_another_step_does_not(data, answers):
    vehicle = FlyingRobot()
    vehicle.hear(b"forward 500")
    vehicle.run(1.0)
    assert [each.data for each in sent(vehicle.hear(data))] == answers
    assert (vehicle.body.wanted == BodyVelocity()) is (data != b"cw 90")


@pytest.mark.parametrize(
    ("told", "reason", "seconds"),
    [(Telemetry((0, 0, 1), 0.0), b"0.50 m and 0 degrees are left", 6.04), (Telemetry(), b"there is no odometry", 0),
     (Telemetry((0, 0, 0), 0.0, is_flying=False), b"it is not flying", 0)],
)  # fmt: skip
def test_a_step_that_the_vehicle_can_not_make_fails(told, reason, seconds):
    assert FlyingRobot(told=told).until_answered(b"forward 50")[:2] == (
        b"error " + reason,
        pytest.approx(seconds, abs=0.1),
    )


def test_a_step_of_a_vehicle_has_its_speed_and_ends_in_a_stall():
    vehicle = FlyingRobot(is_body=False)
    assert published(vehicle.hear(b"forward 100")) == [BodyVelocity(1.0)], "an emulated one scales it by its maximum"
    actions = vehicle.stall(1.0)
    assert published(actions) == [BodyVelocity()]
    assert [each.data for each in sent(actions)] == [b"error the process was stalled"]


class DrivingPioneer(FlyingRobot):
    """Served robot with its program, after OPEN. Its body follows the commands as a ROS vehicle would."""

    def __init__(self, **options):
        super().__init__(Pioneer, is_body=False, timeout_s=2.0, **options)
        for data in map(packet, (0, 1, 2, 1)):
            self.hear(data)

    def drive(self, seconds, *data):
        """Send packets, and drive for a time. Return where the body is, and its heading in degrees."""
        for each in data:
            self.hear(each)
        for _ in range(round(seconds / STEP_S)):
            self.body.step(STEP_S)
            self.run(STEP_S)
        return self.body.x, self.body.y, math.degrees(self.body.heading)

    def run(self, seconds):
        return self.take(super().run(seconds))


def test_a_program_of_headings_turns_where_it_wants():
    """The fault was 8 m straight ahead."""
    vehicle = DrivingPioneer()
    assert vehicle.drive(1.8, command(12, 90)) == pytest.approx((0, 0, 90), abs=3)
    vehicle.drive(1.8, command(13, 45), command(12, 270))
    assert vehicle.drive(1.8, packet(0)) == pytest.approx((0, 0, -90), abs=3), "the heading took the turn's place"
    x, y, degrees = vehicle.drive(1.9, command(8, 1000))
    assert (x, y, degrees) == (pytest.approx(0, abs=0.1), pytest.approx(-1, abs=0.1), pytest.approx(-90, abs=3))
    x, y, degrees = vehicle.drive(1.9, command(11, 200), command(12, 0))
    assert (x > 0.1, y > -1.2, degrees) == (True, True, pytest.approx(0, abs=6)), "an arc"
    assert vehicle.body.wanted.forward == 0.2, "as long as its program is there"
    vehicle.drive(0.3)
    assert vehicle.body.wanted == BodyVelocity()


@pytest.mark.parametrize("stop", [packet(29), packet(55), packet(2), command(4, 0), command(11, 0), packet(253), None])
def test_a_way_ends_with_any_stop_and_with_the_connection(stop):
    vehicle = DrivingPioneer()
    vehicle.drive(0.5, command(8, 5000))
    assert vehicle.body.wanted.forward > 0.5
    vehicle.hear(stop) if stop else vehicle.take(list(vehicle.session.disconnected(ONE, "gone", vehicle.now_s)))
    assert vehicle.body.wanted == BodyVelocity()


def test_a_vehicle_that_can_not_move_sideways_ends_its_way_beside_it():
    """Its heading is off by 3 degrees, so it passes the end at a distance of 5 cm."""
    vehicle = FlyingRobot(RoboMaster, is_body=False)
    vehicle.hear(b"chassis move x 1;")
    answers = [each.data for x in (0.2, 0.6, 0.98) for each in vehicle.at(x, 0.05 * x)]
    assert answers == [b"ok;"]


def test_its_program_is_not_silent_while_it_waits_for_the_end_of_a_way():
    vehicle = FlyingRobot()
    vehicle.hear(b"cw 3600")
    vehicle.run(8.0)
    assert vehicle.session.silent_s(vehicle.now_s) == 0
    vehicle.hear(b"stop")
    vehicle.run(8.0)
    assert vehicle.session.silent_s(vehicle.now_s) == 8.0


def test_a_program_that_only_says_that_it_is_there_drives_on():
    vehicle = DrivingPioneer()
    vehicle.hear(command(11, 200))
    for _ in range(4):
        vehicle.drive(1.5, packet(0))
    assert vehicle.body.wanted == BodyVelocity(0.2)
    vehicle.drive(2.1)
    assert vehicle.body.wanted == BodyVelocity()


def test_what_is_refused_is_logged_and_counted():
    assert "JOYDRIVE" in notes(DrivingPioneer().hear(command(47, 1)), UNSUPPORTED)[0]


def test_a_way_that_fails_is_logged_where_the_robot_does_not_answer():
    vehicle = DrivingPioneer(told=Telemetry())
    assert "there is no odometry" in notes(vehicle.hear(command(8, 500)), OPERATORS_LOST)[0]


@pytest.mark.parametrize(
    ("names", "phases", "answers"),
    [("takeoff", [RISES, FOLLOWS], "takeoff:ok"), ("land", [STANDS], "land:it is standing"),
     ("takeoff takeoff", [RISES, FOLLOWS], "takeoff:it is rising takeoff:ok"),
     ("takeoff land", [RISES, LANDS, STANDS], "takeoff:it is landing land:ok"),
     ("takeoff emergency", [RISES, FALLS, STANDS], "takeoff:it is falling emergency:ok")],
)  # fmt: skip
def test_requests_are_answered_when_they_are_done(names, phases, answers):
    world, answered, seen = emulator._World(Tello, Cancellation()), {}, []
    world.session = SimpleNamespace(received_s=None)
    world.session.answered = lambda tag, ok, reason: answered.setdefault(f"{tag}:{reason or 'ok'}", len(seen) * STEP_S)
    world.loop = SimpleNamespace(post=lambda call, is_kept: call())
    for step in range(350):
        if step % 50 == 0 and (name := " ".join(names.split()[step // 50 :][:1])):
            world.call_service(name, name)
        world.step(STEP_S)
        seen.append(world.body.phase)
    assert list(dict.fromkeys(seen)) == phases
    assert " ".join(answered) == answers
    assert 3.0 < answered.get("takeoff:ok", 4.0) < 5.0, "as of a real one"
