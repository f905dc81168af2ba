# SPDX-License-Identifier: Apache-2.0
"""The behaviour against the emulated world, in this process, and its parts against what they promise."""

import math
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from rotations import of_testbed_angles

from drone_bridge.controllers.seek_target.pilot import STANDING_TIME, SeekParameters, SeekState, SeekTarget
from drone_bridge.controllers.seek_target.sphere_detector import SphereDetector
from drone_bridge.controllers.seek_target.steering import CommandsInFlight
from drone_bridge.controllers.seek_target.target_estimator import TargetEstimator
from drone_bridge.motion.attitude_estimator import AttitudeEstimator
from drone_bridge.motion.flight_control import DroneModel, RatesAndThrust, hover
from drone_bridge.motion.matrices import angles_from_rotation, rotation_from_vector
from drone_bridge.motion.quaternions import MeasuredAttitude
from drone_bridge.motion.wind import WindRotation
from drone_bridge.testbed.vehicle.device.drone_state import Airframe, DroneInput, DroneState
from drone_bridge.testbed.vehicle.emulator.world import (
    GREY,
    REACHED_WITHIN_M,
    RED,
    Sphere,
    SphereWorld,
    StereoCamera,
    WorldFlight,
)
from drone_bridge.vision.pinhole import Pinhole

BASELINE = 0.25  # m
STEP = 1 / 60  # s
RATE_LIMIT = math.radians(720)
#: So near that a narrow camera does not see the target's outline, as the emulator counts it.
NEAR = SeekParameters(hold_distance=0.65, reach_distance=0.75)
DRONE = DroneModel(1.0, 9.81, 0.2, 25.0, RATE_LIMIT, RATE_LIMIT, RATE_LIMIT)


@dataclass
class Eyes:
    """A stereo camera, told to both sides."""

    width: int = 200
    height: int = 200
    horizontal: float = 120.0  # degrees
    vertical: float = 120.0

    @property
    def camera(self):
        return StereoCamera(self.width, self.height, self.horizontal, self.vertical, BASELINE)

    @property
    def pinhole(self):
        return Pinhole(
            self.width,
            self.height,
            fx=self.width / 2 / math.tan(math.radians(self.horizontal) / 2),
            fy=self.height / 2 / math.tan(math.radians(self.vertical) / 2),
            cx=(self.width - 1) / 2,
            cy=(self.height - 1) / 2,
        )

    @property
    def detector(self):
        return SphereDetector(self.pinhole, RED, tolerance=10, background=200)


def at_body(forward, left, up, radius=0.5, colour=RED):
    """A sphere at this place in the REP 103 body frame of a drone at the start, in the emulator's axes."""
    return Sphere((-left, up, -forward), radius, colour)


def measure(state, layout):
    """What a layout carries, in REP 103 terms, rounded as on the wire."""
    heading, pitch, roll = (math.radians(np.float32(angle)) for angle in state.angles)
    carried = {"pitch_yaw": (None, pitch, -heading), "pitch_roll": (roll, pitch, None), "pose": (roll, pitch, -heading)}
    return MeasuredAttitude(*carried[layout])


@dataclass
class Outcome:
    reached_at: float | None
    distances: list
    decisions: list
    positions: list

    def farthest_after(self, time, rate):
        return max(self.distances[round(time * rate) :])


def fly(
    world, *, layout="pitch_yaw", delay=0, rate=60, eyes=None, drone=DRONE, parameters=None, hold=1.0, longest=30.0
):
    """Fly until `hold` s after reaching the target, or for the longest time. Replies come `delay` frames late."""
    eyes = eyes or Eyes()
    camera = eyes.camera
    flight = WorldFlight(world, Airframe(drone.mass, drone.gravity, drone.drag), 1 / rate)
    behaviour = SeekTarget(parameters or SeekParameters(), drone, eyes.pinhole, BASELINE)
    waiting = [hover(drone)] * delay
    distances, decisions, positions = [], [], []
    while flight.state.time < longest and (flight.reached_at is None or flight.state.time < flight.reached_at + hold):
        left, right = camera.render(flight.state, world.spheres)
        decisions.append(behaviour.update(flight.state.time, left, right, measure(flight.state, layout)))
        waiting.append(decisions[-1].command)
        command = waiting.pop(0)
        flight.advance(
            DroneInput(
                math.degrees(command.pitch_rate),
                math.degrees(command.roll_rate),
                -math.degrees(command.yaw_rate),
                command.thrust,
            )
        )
        distances.append(flight.distance)
        positions.append(flight.state.position)
    return Outcome(flight.reached_at, distances, decisions, positions)


def assert_reached_and_held(outcome, rate=60):
    assert outcome.reached_at is not None
    assert outcome.farthest_after(outcome.reached_at, rate) <= REACHED_WITHIN_M
    assert min(outcome.distances) > 0.5, "it flew into the target"


@pytest.mark.parametrize("layout", ["pitch_yaw", "pitch_roll", "pose"])
@pytest.mark.parametrize(("seed", "delay"), [pytest.param(3, 0, marks=pytest.mark.exhaustive), (8, 2)])
def test_it_reaches_the_target_and_holds(layout, seed, delay):
    assert_reached_and_held(fly(SphereWorld.random(seed), layout=layout, delay=delay))


@pytest.mark.parametrize(
    ("seed", "rotation"),
    [
        pytest.param(0, [(0, (9, 8, -9))], marks=pytest.mark.exhaustive),
        pytest.param(4, [(0, (-11, -8, 6))], marks=pytest.mark.exhaustive),
        (7, [(0, (15, 15, -15)), (8, (-15, 15, 15))]),
    ],
)
def test_it_reaches_the_target_in_wind_that_turns_the_drone(seed, rotation):
    world = SphereWorld.random(seed, wind_rotation=WindRotation(rotation))
    assert_reached_and_held(fly(world, layout="pitch_roll"))


def test_a_narrow_view_that_the_target_fills_is_enough():
    # Looking straight at a target 0.65 m away, nothing but red would be seen.
    outcome = fly(SphereWorld.random(2), rate=30, eyes=Eyes(96, 96, 60, 60), parameters=NEAR, hold=3)
    assert_reached_and_held(outcome, rate=30)


def test_it_looks_higher_for_what_it_can_not_see_from_here():
    # Above the view of a narrow camera at any heading.
    world = SphereWorld((Sphere((2, 4.5, -4), 0.5),))
    outcome = fly(world, rate=30, eyes=Eyes(96, 96, 60, 60), parameters=NEAR)
    assert outcome.decisions[0].state is SeekState.SEARCHING
    assert any("higher" in decision.reason for decision in outcome.decisions)
    assert_reached_and_held(outcome, rate=30)


def test_it_finds_its_way_around_what_hides_the_target():
    world = SphereWorld((Sphere((0, 0, -6), 0.5),), (Sphere((0, 0, -2), 0.6, GREY),))
    outcome = fly(world, rate=30)
    assert outcome.decisions[0].state is SeekState.SEARCHING
    assert_reached_and_held(outcome, rate=30)


def test_it_backs_off_from_a_target_that_fills_the_view():
    world = SphereWorld((Sphere((0, 0, -0.4), 0.5),))
    outcome = fly(world, rate=30, eyes=Eyes(64, 64, 60, 60), parameters=NEAR, hold=6)
    assert any("backing off" in decision.reason for decision in outcome.decisions)
    assert 0.55 < outcome.distances[-1] <= REACHED_WITHIN_M


def test_the_states_follow_each_other():
    outcome = fly(SphereWorld((Sphere((3, 1, 6), 0.5),)))  # behind it
    states = [decision.state for decision in outcome.decisions]
    first = {state: states.index(state) for state in SeekState}
    in_order = [state.name for state in sorted(first, key=first.get)]
    assert in_order == ["SEARCHING", "APPROACHING", "BRAKING", "HOLDING"]
    assert outcome.decisions[0].distance is None
    assert outcome.decisions[-1].distance == pytest.approx(outcome.distances[-1], abs=0.02)


def test_an_unknown_radius_is_found_out_by_stereo():
    parameters = SeekParameters(target_radius=0.3, target_radius_deviation=0.7)
    outcome = fly(SphereWorld((Sphere((1, 0.5, -5), 0.5),)), parameters=parameters, hold=2)
    assert_reached_and_held(outcome)


def test_without_a_target_it_stays_about_where_it_is_and_keeps_looking():
    outcome = fly(SphereWorld((Sphere((0, 0, 500), 0.01),)), rate=30, eyes=Eyes(16, 16))
    assert {(decision.state, decision.distance) for decision in outcome.decisions} == {(SeekState.SEARCHING, None)}
    positions = np.array(outcome.positions)
    heights = positions[:, 1]
    assert max(heights[: 30 * 12]) == pytest.approx(3, abs=0.5)
    assert max(heights) == pytest.approx(6, abs=0.5)
    assert min(heights) == pytest.approx(-6, abs=0.5)
    assert np.abs(positions[-1, [0, 2]]).max() < 0.5


@pytest.mark.parametrize("wind", [(0, 0, 0), (0, 0, 1)])
def test_a_drone_that_is_told_its_pose_stands_before_it_looks_around(wind):
    eyes, start = Eyes(16, 16), DroneState.at_start()
    behaviour = SeekTarget(SeekParameters(), DRONE, eyes.pinhole, BASELINE)
    images = eyes.camera.render(start, ())
    state = replace(start, velocity=np.array([3.0, -1.0, -4.0]), rotation=of_testbed_angles(40, 10, -5))
    states, reasons = [], []
    for _ in range(15 * 60):
        heading, pitch, roll = map(math.radians, state.angles)
        east, up, south = state.position.tolist()
        attitude = MeasuredAttitude(roll, pitch, math.pi / 2 - heading)
        decision = behaviour.update(state.time, *images, attitude, (east, -south, up))
        rates = (decision.command.pitch_rate, decision.command.roll_rate, -decision.command.yaw_rate)
        state = state.advance(
            Airframe(), DroneInput(*map(math.degrees, rates), decision.command.thrust), np.array(wind), STEP
        )
        states.append(state)
        reasons.append(decision.reason)
    last = len(reasons) - 1 - reasons[::-1].index("nothing in sight, stopping to look around")
    stood = last + round(STANDING_TIME / STEP)
    assert states[stood].time < 4
    assert abs(states[stood].angles[0] - 40) < 10, "it turned before it stood"
    assert np.linalg.norm(states[stood].velocity) < 0.5
    drifted = [np.linalg.norm((later.position - states[stood].position)[[0, 2]]) for later in states[stood:]]
    assert max(drifted) < 0.3
    heights = [later.position[1] - states[stood].position[1] for later in states[stood:]]
    assert max(heights) == pytest.approx(3, abs=0.3)
    assert min(heights) == pytest.approx(-3, abs=0.3)


@pytest.mark.parametrize(
    ("eyes", "hold"), [(Eyes(), 0.65), (Eyes(160, 120, 73.0, 58.0), 0.985), (Eyes(64, 64, 40, 40), 2.07)]
)
def test_the_distance_to_hold_follows_the_cameras_view(eyes, hold):
    assert SeekParameters().distances(eyes.pinhole, 0.5) == pytest.approx((hold, hold + 0.1), abs=0.01)
    assert SeekParameters(hold_distance=0.6, reach_distance=0.8).distances(eyes.pinhole, 0.5) == (0.6, 0.8)
    assert SeekParameters(clearance=3.0).distances(eyes.pinhole, 0.5) == pytest.approx((3.5, 3.6))


def test_time_running_back_starts_over_and_time_standing_still_is_harmless():
    eyes = Eyes(40, 40)
    behaviour = SeekTarget(SeekParameters(), DRONE, eyes.pinhole, BASELINE)
    left, right = eyes.camera.render(DroneState.at_start(), [at_body(4, 0, 0)])
    level = MeasuredAttitude(pitch=0.0, yaw=0.0)
    first = behaviour.update(5.0, left, right, level)
    again = behaviour.update(5.0, left, right, level)
    assert first.distance == pytest.approx(4, rel=0.1)
    assert again.distance == pytest.approx(4, rel=0.1)
    white = np.full_like(left, 255)
    assert behaviour.update(5.1, white, white, level).state is not SeekState.SEARCHING
    assert behaviour.update(0.0, white, white, level).state is SeekState.SEARCHING


def test_the_target_is_given_up_after_a_while_out_of_sight():
    eyes = Eyes(40, 40)
    behaviour = SeekTarget(SeekParameters(coast_time=0.5), DRONE, eyes.pinhole, BASELINE)
    left, right = eyes.camera.render(DroneState.at_start(), [at_body(4, 0, 0)])
    white = np.full_like(left, 255)
    level = MeasuredAttitude(pitch=0.0, yaw=0.0)
    behaviour.update(0.0, left, right, level)
    states = [behaviour.update(0.1 * frame, white, white, level).state for frame in range(1, 8)]
    assert SeekState.SEARCHING not in states[:5]
    assert states[6] is SeekState.SEARCHING


@pytest.mark.parametrize("eyes", [Eyes(24, 16), Eyes(1, 1), Eyes(3, 90, 179.9, 0.001)])
def test_whatever_the_pictures_show_commands_are_numbers_within_limits(eyes):
    generator = np.random.default_rng(eyes.width)
    palette = np.array([RED, GREY, (255, 255, 255), (250, 3, 9)], np.uint8)
    behaviour = SeekTarget(SeekParameters(), DRONE, eyes.pinhole, BASELINE)
    stamp = 0.0
    for _ in range(300):
        stamp += generator.choice([0, 1e-6, STEP, 0.3, 5])
        share = generator.dirichlet([0.3] * 4)
        images = palette[generator.choice(4, (2, eyes.height, eyes.width), p=share)]
        angles = generator.uniform(-4, 4, 3)
        known = generator.random(3) < 0.5
        measured = MeasuredAttitude(*(angle if use else None for angle, use in zip(angles, known, strict=True)))
        decision = behaviour.update(stamp, *images, measured)
        command = decision.command
        assert np.isfinite(command.rates).all()
        assert np.abs(command.rates).max() <= RATE_LIMIT
        assert 0 <= command.thrust <= DRONE.max_thrust


def outlines(eyes, *spheres):
    detector = eyes.detector
    return [detector.detect(image) for image in eyes.camera.render(DroneState.at_start(), spheres)]


@pytest.mark.parametrize("place", [(4, 0, 0), (3, 2, 1), (5, -3, -2), (0.65, 0, 0), (0.5, 0.4, 0.2), (12, 5, 3)])
def test_the_outline_tells_where_the_target_is(place):
    estimator = TargetEstimator(BASELINE, 0.2, 0.5, 0.005)
    estimator.correct(outlines(Eyes(), at_body(*place)), np.eye(3))
    assert estimator.position == pytest.approx(place, rel=0.06, abs=0.06)


def turned(rates, time, start=None):
    return (np.eye(3) if start is None else start) @ rotation_from_vector(np.array(rates) * time)


def test_slivers_between_the_points_of_the_grid_have_a_middle():
    image = np.full((200, 200, 3), 255, np.uint8)
    image[48, 48] = image[151, 151] = RED
    assert Eyes().detector.detect(image).middle == pytest.approx((1.0, 0.0, 0.0), abs=1e-6)


@pytest.mark.parametrize("delay", range(4))
def test_late_commands_are_recognised_by_what_they_do(delay):
    generator = np.random.default_rng(delay)
    neutral = RatesAndThrust(0, 0, 0, 9.81)
    in_flight = CommandsInFlight(neutral)
    estimator = AttitudeEstimator(MeasuredAttitude(pitch=0.0, yaw=0.0))
    sent = [neutral] * delay
    truth = np.eye(3)
    right = 0
    for frame in range(100):
        sent.append(RatesAndThrust(*generator.normal(0, 0.5, 3), 9.81))
        in_flight.add(sent[-1])
        truth = turned(sent[-1 - delay].rates, STEP, truth)
        _, pitch, yaw = angles_from_rotation(truth)
        measured = MeasuredAttitude(pitch=pitch, yaw=yaw)
        found = in_flight.acted(estimator, measured, STEP)
        right += frame >= 20 and found == sent[-1 - delay]
        estimator.predict(found.rates, STEP)
        estimator.correct(measured)
    assert in_flight.usual_delay == delay
    assert len(in_flight.waiting) == delay
    assert right >= 76


@pytest.mark.parametrize(("distance", "off_axis"), [(10.0, 0.0), (1.0, math.pi / 6 + 0.1 - 0.3), (0.1, 1.0)])
def test_the_target_is_turned_to_until_its_edge_is_a_margin_inside_the_view(distance, off_axis):
    pilot = SimpleNamespace(_hold_distance=0.5, _target=SimpleNamespace(radius=0.5))
    pilot._parameters, pilot._pinhole = SimpleNamespace(edge_margin=0.1), SimpleNamespace(half_width_angle=0.3)
    for side in (1.0, -1.0):
        assert SeekTarget._off_axis(pilot, distance, side) == pytest.approx(side * off_axis)
