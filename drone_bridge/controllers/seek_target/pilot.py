# SPDX-License-Identifier: Apache-2.0
"""SeekTarget, the logic of the behaviour `seek_target`: find a sphere of one colour, fly to it, and stay there.

Each frame is processed in four stages:

1. Attitude: integrate the commanded rates that were in effect, and correct the result by the measured angles.
2. Target: update a Kalman filter of its relative position, the drone's velocity and the disturbance by the outlines in
   both images.
3. Guidance: compute a velocity towards the holding point beside the target, at its height, from which the allowed
   deceleration can always stop the drone. Derive the acceleration from it.
4. Control: point the thrust along the acceleration, with compensation of gravity, drag and disturbance. The nose
   follows the target.

Stages 3 and 4 use the state predicted for the time at which the command takes effect.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np

from drone_bridge.controllers.seek_target.sphere_detector import Outline, SphereDetector
from drone_bridge.controllers.seek_target.steering import SeekSteering
from drone_bridge.controllers.seek_target.target_estimator import TargetEstimator
from drone_bridge.motion.attitude_estimator import AttitudeEstimator
from drone_bridge.motion.flight_control import CommandLimits, DroneModel, FlightControl, RatesAndThrust, braking_profile
from drone_bridge.motion.matrices import Triple, Vector
from drone_bridge.motion.quaternions import MeasuredAttitude, Quaternion, rotated
from drone_bridge.parameter_fields import parameter
from drone_bridge.vision.pinhole import Image, Pinhole


@dataclass(frozen=True, slots=True)
class SeekParameters:
    """Parameters of target and flight.

    Raises ValueError for a holding point inside the target or beyond reach_distance, and for an invalid colour.
    """

    target_colour: tuple[int, ...] = parameter((255, 0, 0), "Red, green, blue of the target, each 0 to 255.")
    colour_tolerance: int = 10  # of each colour channel
    background_level: int = parameter(
        200, "Pixels with all channels at or above this are background; 0: everything but the target.", 0, 255
    )
    target_radius: float = parameter(0.5, "Radius of the target, m.", 0.01, 100.0)
    target_radius_deviation: float = parameter(
        0.005, "Relative deviation of the radius. If it is unknown, set about 1, which relies on stereo.", 0.0, 10.0
    )
    hold_distance: float = parameter(
        0.0,
        "Distance from the target's centre at which to stop, m; 0: where the camera sees its outline, and clearance "
        "from its surface at least.",
        0.0,
        100.0,
    )
    reach_distance: float = parameter(
        0.0,
        "Distance from the target's centre within which it counts as reached, m; 0: 0.1 m more than hold_distance.",
        0.0,
        100.0,
    )
    clearance: float = 0.15  # room to keep to the target's surface, m
    max_speed: float = 4.0  # horizontal, m/s
    max_climb_speed: float = 2.5  # up and down, m/s
    max_deceleration: float = 3.0  # deceleration on which braking distances are based, m/s^2
    max_acceleration: float = 5.0  # sideways acceleration limit, m/s^2
    max_tilt: float = math.radians(30)
    max_turn_rate: float = 4.0  # roll and pitch rate limit, rad/s
    search_yaw_rate: float = 2.0  # yaw rate while looking around, rad/s
    search_height: float = 3.0  # change of height for each further turn of the search, m
    coast_time: float = 2.0  # time to continue by dead reckoning while the target is out of sight, s
    position_gain: float = 1.4  # position gain close to the holding point, 1/s
    velocity_gain: float = 2.5  # velocity gain, 1/s
    attitude_gain: float = 8.0  # 1/s
    yaw_gain: float = 3.0  # 1/s
    edge_margin: float = math.radians(12)  # desired margin between the target's outline and the edge of the view, rad

    def __post_init__(self) -> None:
        nearest, farthest = self.target_radius, self.reach_distance or math.inf
        if self.hold_distance and not nearest < self.hold_distance < farthest:
            raise ValueError(
                f"hold_distance must be between target_radius, {self.target_radius}, and reach_distance, "
                f"{self.reach_distance}, not {self.hold_distance}"
            )
        if len(self.target_colour) != 3 or not all(0 <= channel <= 255 for channel in self.target_colour):
            raise ValueError(f"target_colour must be three numbers from 0 to 255, not {list(self.target_colour)}")

    def distances(self, pinhole: Pinhole, radius: float) -> tuple[float, float]:
        """Return hold_distance and reach_distance, m, for a camera and a target of this radius, m."""
        view = max(pinhole.half_width_angle - self.edge_margin / 2, LEAST_VIEW)
        nearest = max(radius + self.clearance, radius / math.sin(view))
        hold = self.hold_distance or min(nearest, self.reach_distance or math.inf)
        return hold, self.reach_distance or hold + REACH_MARGIN


LEAST_VIEW = math.radians(5)  # lower bound of the half view angle in the computation of hold_distance
REACH_MARGIN = 0.1  # m
LONGEST_GAP = 1.0  # s between frames; a longer gap resets the behaviour
FULL_TURN = 1.1 * math.tau  # rad, with some overlap
LEAST_VIEW_TILT = math.radians(6)  # always allowed, even if the target leaves the view
LEAST_DISTANCE_ASIDE = 0.3  # m; a target at a smaller horizontal distance has no heading
HOLDING_SPEED = 0.4  # m/s
STANDING_SPEED = 0.3  # m/s; only a drone at rest looks around
STANDING_TIME = 0.1  # s of rest required, since a single frame does not show motion
BRAKING_SPEED = 0.5  # m/s
BLIND_TIME = 0.3  # s without an edge of the target in view until the drone backs off
BACKING_SPEED = 0.5  # m/s


class SeekState(str, Enum):
    """State of the search."""

    SEARCHING = "searching"
    APPROACHING = "approaching"
    BRAKING = "braking"
    HOLDING = "holding"


@dataclass(frozen=True, slots=True)
class SeekDecision:
    """Command for a frame, and the reason for it."""

    command: RatesAndThrust
    state: SeekState
    reason: str  # a human-readable phrase
    distance: float | None  # estimated, m from the target's centre; None while unknown


class SeekTarget:
    """Pilot of the behaviour: frames in, commands out."""

    def __init__(self, parameters: SeekParameters, drone: DroneModel, pinhole: Pinhole, baseline: float) -> None:
        """Initialize for a drone and a stereo camera that looks forward, with equal intrinsics and a baseline, m."""
        self._parameters, self._drone = parameters, drone
        self._hold_distance, self._reach_distance = parameters.distances(pinhole, parameters.target_radius)
        self._pinhole = pinhole
        self._baseline = baseline
        self._detector = SphereDetector(
            pinhole, parameters.target_colour, parameters.colour_tolerance, parameters.background_level
        )
        limits = CommandLimits(parameters.max_tilt, parameters.max_turn_rate, parameters.search_yaw_rate)
        # Limited by the tilt at which the target stays in view.
        view = max(pinhole.half_height_angle - parameters.edge_margin, LEAST_VIEW_TILT)
        self._control = FlightControl(drone, limits, parameters.attitude_gain, parameters.yaw_gain)
        self._deceleration = min(parameters.max_deceleration, 0.8 * drone.gravity * math.tan(view))
        self._stamp: float | None = None

    def update(
        self, stamp: float, left: Image, right: Image, measured: MeasuredAttitude, place: Triple | None = None
    ) -> SeekDecision:
        """Return the decision for a frame with this stamp, s.

        Images are height x width x 3, red green blue. `place` is the drone's position, m, in the frame to which the
        measured yaw refers; None: not measured. It determines the drone's motion while no target is in sight. A stamp
        that goes back or jumps by more than LONGEST_GAP resets the behaviour. Raises ValueError if an image does not
        have the camera's size.
        """
        outlines = (self._detector.detect(left), self._detector.detect(right))
        if self._stamp is None or not 0 <= stamp - self._stamp <= LONGEST_GAP:
            self._start(measured)
        elif stamp > self._stamp:
            self._advance(measured, stamp - self._stamp)
        self._stamp = stamp
        if place is not None:
            self._target.correct_by_place(np.array(place))
        self._target.correct(outlines, self._attitude.rotation)
        self._update_sight(outlines, stamp)

        attitude, position, velocity = self._steering.predicted(self._step)
        if self._target.is_tracking:
            return self._approach(attitude, position, velocity)
        return self._search(attitude, velocity)

    def _start(self, measured: MeasuredAttitude) -> None:
        self._attitude = AttitudeEstimator(measured)
        self._target = TargetEstimator(
            self._baseline, self._drone.decay, self._parameters.target_radius, self._parameters.target_radius_deviation
        )
        self._steering = SeekSteering(self._drone, self._control, self._attitude, self._target)
        self._step = 1 / 60  # s, initial value
        self._seen_at = -math.inf
        self._sees = False
        self._blind_for = 0.0  # s during which the target has filled the view of both cameras
        self._state = SeekState.SEARCHING
        self._searching_direction = 1.0  # positive turns left
        self._restart_search(1.0)

    def _advance(self, measured: MeasuredAttitude, step: float) -> None:
        """Advance by the command that was in effect."""
        acceleration, turned = self._steering.advance(measured, step)
        self._target.predict(acceleration, step)
        if self._stood_for >= STANDING_TIME:
            self._turned += turned
            self._height += float(self._target.velocity[2]) * step
        self._step = step

    def _update_sight(self, outlines: tuple[Outline | None, Outline | None], stamp: float) -> None:
        """Update whether the target is in sight, and discard it when coast_time has passed without a sighting."""
        seen = [outline for outline in outlines if outline is not None]
        self._sees = bool(seen)
        is_blind = self._sees and all(outline.fills_view for outline in seen)
        self._blind_for = self._blind_for + self._step if is_blind else 0.0
        if self._sees:
            self._seen_at = stamp
        elif self._target.is_tracking and stamp - self._seen_at > self._parameters.coast_time:
            self._target.forget()
            towards = self._attitude.rotation.T @ self._target.position
            self._searching_direction = math.copysign(1.0, towards[1])
            self._restart_search(math.copysign(1.0, self._target.position[2]))

    def _approach(self, attitude: Quaternion, position: Vector, velocity: Vector) -> SeekDecision:
        parameters = self._parameters
        self._hold_distance, self._reach_distance = parameters.distances(self._pinhole, self._target.radius)
        heading = np.array(rotated(attitude, 1.0, 0.0, 0.0)[:2])
        heading = heading / max(float(np.linalg.norm(heading)), 1e-9)
        beside = float(np.linalg.norm(position[:2]))
        direction = position[:2] / beside if beside > LEAST_DISTANCE_ASIDE else heading
        distance = float(np.linalg.norm(position))

        elevation = math.atan2(position[2], beside)
        backing = BACKING_SPEED * max(self._blind_for - BLIND_TIME, 0.0)
        to_go = position[:2] - (self._hold_distance + backing) * direction
        # With a narrow view, climb to the target's height first. On a straight line, it would stay at the view's edge.
        view = self._pinhole.half_height_angle
        patience = min(max((0.9 * view - abs(elevation)) / (0.5 * view), 0.15), 1.0) if distance > 1.5 else 1.0
        wanted = np.zeros(3)
        wanted[:2], slowing = self._profile(to_go, velocity[:2], parameters.max_speed * patience)
        wanted[2:], lifting = self._profile(position[2:], velocity[2:], parameters.max_climb_speed)
        acceleration = parameters.velocity_gain * (wanted - velocity) + np.append(slowing, lifting)
        acceleration = self._keep_in_view(
            _limited(acceleration, parameters.max_acceleration), heading, elevation, distance
        )

        yaw_error = 0.0
        if beside > LEAST_DISTANCE_ASIDE:
            azimuth = math.atan2(heading[0] * direction[1] - heading[1] * direction[0], float(heading @ direction))
            closing = float(velocity @ position) / distance
            yaw_error = azimuth - self._off_axis(distance - max(closing, 0.0) / parameters.yaw_gain, azimuth)
        command = self._steering.command(attitude, velocity, acceleration, yaw_error, self._step)
        self._note_state(distance, bool(slowing.any()), velocity)
        return SeekDecision(command, self._state, self._reason(distance), distance)

    def _profile(self, to_go: Vector, velocity: Vector, max_speed: float) -> tuple[Vector, Vector]:
        """Return the velocity of the braking profile at a distance, and the acceleration along the profile."""
        distance = float(np.linalg.norm(to_go))
        direction = to_go / max(distance, 1e-9)
        speed, slope = braking_profile(distance, self._parameters.position_gain, self._deceleration)
        if speed > max_speed:
            return max_speed * direction, np.zeros_like(to_go)
        return speed * direction, -slope * float(velocity @ direction) * direction

    def _keep_in_view(self, acceleration: Vector, heading: Vector, elevation: float, distance: float) -> Vector:
        """Limit the acceleration along the heading so that its tilt keeps enough of the target in view."""
        view = self._pinhole.half_height_angle - self._parameters.edge_margin
        view += 0.7 * math.asin(min(self._target.radius / distance, 1.0))
        lift = self._drone.gravity + float(acceleration[2])
        forward = lift * math.tan(min(max(view - elevation, LEAST_VIEW_TILT), 1.0))
        backward = lift * math.tan(min(max(view + elevation, LEAST_VIEW_TILT), 1.0))
        along = float(acceleration[:2] @ heading)
        excess = along - min(max(along, -backward), forward)
        return acceleration - excess * np.append(heading, 0.0)

    def _off_axis(self, distance: float, azimuth: float) -> float:
        """Return the azimuth of the target's centre, rad, at which one of its edges stays in view."""
        nearest = max(distance, self._hold_distance)
        excess = (
            math.asin(min(self._target.radius / nearest, 1.0))
            + self._parameters.edge_margin
            - self._pinhole.half_width_angle
        )
        return math.copysign(min(max(excess, 0.0), 1.0), azimuth)

    def _note_state(self, distance: float, slows_down: bool, velocity: Vector) -> None:
        speed = float(np.linalg.norm(velocity))
        reach = self._reach_distance * (1.2 if self._state is SeekState.HOLDING else 1.0)
        if distance <= reach and speed < HOLDING_SPEED:
            self._state = SeekState.HOLDING
        elif slows_down and speed > BRAKING_SPEED:
            self._state = SeekState.BRAKING
        else:
            self._state = SeekState.APPROACHING

    def _reason(self, distance: float) -> str:
        if not self._sees:
            return f"target out of sight, expected at {distance:.1f} m"
        if self._blind_for > BLIND_TIME:
            return "target fills the view, backing off to see an edge of it"
        return f"target in sight at {distance:.2f} m"

    def _restart_search(self, first_side: float) -> None:
        """Stop, search at this height, then alternately on both sides of it. `first_side`: 1 above, -1 below."""
        self._stood_for = 0.0  # s
        self._turned = 0.0  # rad at the present level
        self._height = 0.0  # m above the start of the search
        self._level = 0
        self._first_side = first_side

    def _search(self, attitude: Quaternion, velocity: Vector) -> SeekDecision:
        """Turn on the spot, with a new height after each full turn: 0, +1, -1, +2, -2, ... times search_height."""
        parameters = self._parameters
        if self._stood_for < STANDING_TIME:
            is_standing = float(np.linalg.norm(velocity)) < STANDING_SPEED
            self._stood_for = self._stood_for + self._step if is_standing else 0.0
        has_stood = self._stood_for >= STANDING_TIME
        if self._turned > FULL_TURN:
            self._turned = 0.0
            self._level += 1
        side = self._first_side if self._level % 2 else -self._first_side
        goal = side * ((self._level + 1) // 2) * parameters.search_height
        to_climb = np.array([goal - self._height])
        if abs(to_climb[0]) > 1:
            self._turned = 0.0
        wanted = np.zeros(3)
        wanted[2:], lifting = self._profile(to_climb, velocity[2:], parameters.max_climb_speed)
        acceleration = parameters.velocity_gain * (wanted - velocity)
        acceleration[2:] += lifting
        acceleration = _limited(acceleration, parameters.max_acceleration)
        yaw_rate = self._searching_direction * 1.5 * parameters.search_yaw_rate if has_stood else 0.0
        yaw_error = yaw_rate / parameters.yaw_gain
        command = self._steering.command(attitude, velocity, acceleration, yaw_error, self._step)
        self._state = SeekState.SEARCHING
        if not self._stood_for:
            return SeekDecision(command, self._state, "nothing in sight, stopping to look around", None)
        place = "here" if not self._level else f"{abs(goal):.0f} m {'higher' if goal > 0 else 'lower'}"
        return SeekDecision(command, self._state, f"nothing in sight, looking around {place}", None)


def _limited(acceleration: Vector, limit: float) -> Vector:
    """Limit the horizontal component."""
    share = min(1.0, limit / max(float(np.linalg.norm(acceleration[:2])), 1e-9))
    limited: Vector = acceleration * np.array([share, share, 1.0])
    return limited
