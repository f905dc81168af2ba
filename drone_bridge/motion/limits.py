# SPDX-License-Identifier: Apache-2.0
"""Limits: bounds commanded velocities by the vehicle's reported motion. The time is an input.

Velocities are in level axes with the vehicle's heading, positions in world axes. The vehicle follows commands with an
unknown lag. The speed towards an edge is therefore bounded by the braking distance: after a reaction time, at a
deceleration that every supported vehicle reaches, from the position extrapolated by the command, and by the measured
velocity if that is larger. The older the last position, the lower the speed.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.observed_motion import ObservedMotion
from drone_bridge.motion.vectors import Triple, added, dot, scaled, subtracted, turned
from drone_bridge.parameter_fields import parameter


@dataclass(frozen=True, slots=True)
class LimitParameters:
    """Limits of a vehicle. Zero means no limit."""

    max_speed: float = parameter(0.0, "Maximum speed of cmd_vel, m/s. 0: no limit.", 0.0, 1000.0)
    max_height: float = parameter(
        0.0, "Height at which climbing ends, m, above the ground or, if that is unknown, above the start. 0: no limit.",
        0.0, 1000.0,
    )  # fmt: skip
    fence_radius: float = parameter(
        0.0, "Radius of the fence, a cylinder about the start that cmd_vel can't leave, m. 0: no fence.", 0.0, 100000.0
    )
    odometry_timeout: float = parameter(
        0.5, "Timeout of odometry, s. A vehicle with a fence or a maximum height then gets the neutral command.",
        0.1, 60.0,
    )  # fmt: skip
    land_unattended: float = parameter(
        0.0,
        "Time in the air without a command until the drone lands, s. A hold by a person stops this clock. 0: never.",
        0.0, 3600.0,
    )  # fmt: skip
    land_without_odometry: float = parameter(
        0.0, "Time after odometry_timeout until the drone lands, if it can, s. 0: never.", 0.0, 3600.0
    )
    low_battery: float = parameter(
        0.0, "Battery charge, 0 to 1, below which a warning is given after 2 s. 0: never.", 0.0, 1.0
    )
    land_on_low_battery: bool = parameter(
        False, "Whether a drone with a low battery lands, if it can, and refuses to take off."
    )

    @property
    def of_places(self) -> tuple[str, ...]:
        """Names of the active position limits."""
        return tuple(name for name in ("max_height", "fence_radius") if getattr(self, name) > 0.0)

    @property
    def need_odometry(self) -> bool:
        """Whether a position limit is active."""
        return max(self.max_height, self.fence_radius) > 0.0


#: Debounce time of a low battery, s: under load the voltage drops briefly.
LOW_BATTERY_S = 2.0
#: Duration of a landing without reports, s. By then the drone is on the ground, or is not there any more.
LONGEST_LANDING_S = 60.0
#: Minimum deceleration of a vehicle, m/s², and its reaction time, s.
BRAKING = 1.0
REACTION_S = 0.8
#: Largest speed towards the inside that is imposed on a command outside a limit, m/s.
RETURN_SPEED = 1.0
#: Speed at which a vehicle may return towards the start while its place is doubted, m/s, once it has braked in the
#: doubt for this time, s. The modelled velocity is wrong at first.
DOUBTED_SPEED, BRAKED_S = 0.3, 3.0
_STILL = (0.0, 0.0, 0.0)
#: Steps of Newton's method, and the least speed, m/s, at which it takes a slope.
_STEPS, _LEAST_SPEED = 6, 1e-3
#: Difference between a vehicle's speed and its command, m/s, from which it counts as late.
_FASTER = 0.2
_FENCE_CORNERS = 72
#: Limit of a velocity without `max_speed`, m/s. Products and sums of larger ones may overflow.
FASTEST = 1e9


class Cause(Enum):
    """Why a drone has to land, in descending priority. The value is its text in docs/bridges.md."""

    BATTERY = "its battery is low"
    ODOMETRY = "its odometry has been missing for long"
    UNATTENDED = "nobody has commanded it for long"


class Edge(NamedTuple):
    """Nearest point of a limit: the distance, m, and the outward direction in world axes, a unit vector."""

    distance: float
    outward: Triple


class Limits:
    """Limits of one vehicle. For one thread, except for the queries. Times are by the clock of ObservedMotion.

    `parameters` may be replaced by any thread, at any time. The start, doubts, and the times of reports stay.
    """

    def __init__(self, parameters: LimitParameters, observed: ObservedMotion) -> None:
        self.parameters = parameters
        self._observed = observed
        self._charge = 1.0  # last reported share of the battery's charge
        self._low_since_s: float | None = None  # time of the first report of a low battery, s
        self._charged_at = -math.inf  # time of the last report of the charge, s
        #: Whether the vehicle has last reported that it flies.
        self.flies = False
        self._flying_since_s = math.inf  # time of the first report of this flight, s
        self._flight_at = -math.inf  # time of the last report of whether it flies, s

    def _needed(self, parameters: LimitParameters) -> dict[str, float]:
        """Return the times of the reports that the active position limits need, by name."""
        motion, needed = self._observed.newest, {}
        if parameters.fence_radius or parameters.max_height:
            needed["position"] = motion.position_at
        if parameters.fence_radius:
            needed["heading"] = motion.yaw_at
        if parameters.max_height and motion.ground is not None:
            needed["height"] = motion.ground_at
        return needed

    @property
    def missing(self) -> tuple[str, ...]:
        """Needed measurements that the vehicle has not reported so far: position, heading."""
        return _missing(self._needed(self.parameters))

    def stale(self, now_s: float) -> tuple[str, ...]:
        """Return the needed measurements that were not reported for `odometry_timeout`: position, heading, height."""
        parameters = self.parameters
        needed = self._needed(parameters).items()
        return tuple(name for name, reported_at in needed if now_s - reported_at > parameters.odometry_timeout)

    def is_blind(self, now_s: float) -> bool:
        """Return whether a limit needs odometry that is missing, stale or doubted."""
        is_doubted = self._observed.newest.is_doubted
        return self.parameters.need_odometry and (is_doubted or self.is_fence_lost or bool(self.stale(now_s)))

    @property
    def is_fence_lost(self) -> bool:
        """Whether the vehicle may be anywhere in the fence, since its own pose has begun again."""
        return self._observed.unseen_m >= self.parameters.fence_radius > 0.0

    def is_doubted(self, now_s: float) -> bool:
        """Return whether the vehicle reports its motion, and the newest report is doubted."""
        motion = self._observed.newest
        return motion.is_doubted and now_s - motion.doubted_at <= self.parameters.odometry_timeout

    @property
    def uncertain_s(self) -> float:
        """Longest time without reports, s, over which the vehicle's place in the fence was estimated; 0 if certain."""
        return self._observed.uncertain_s if self.parameters.fence_radius else 0.0

    @property
    def unseen_m(self) -> float:
        """Way, m, by which the fence is smaller since the vehicle's own pose has begun again; 0 without a fence."""
        return self._observed.unseen_m if self.parameters.fence_radius else 0.0

    @property
    def fence(self) -> list[tuple[float, float]]:
        """Corners of the fence in world axes, m, counterclockwise; empty without a fence or a first position."""
        radius, start = self._fence_radius, self._observed.start
        if start is None or radius <= 0.0:
            return []
        angles = [math.tau * number / _FENCE_CORNERS for number in range(_FENCE_CORNERS)]
        return [(start[0] + radius * math.cos(angle), start[1] + radius * math.sin(angle)) for angle in angles]

    @property
    def land_at(self) -> float:
        """Time at which a landing begins without further reports, s. inf: never, or nothing to wait for.

        Neither doubted odometry nor a stall of this process is a reason to land.
        """
        parameters = self.parameters
        if not parameters.land_without_odometry or not parameters.need_odometry:
            return math.inf
        needed = self._needed(parameters)
        if _missing(needed):
            return math.inf
        observed = self._observed
        reported_at = max(min(needed.values()), observed.newest.doubted_at, observed.settled_at())
        return reported_at + parameters.odometry_timeout + parameters.land_without_odometry

    def landing_cause(self, now_s: float, attended_s: float = -math.inf) -> Cause | None:
        """Return why a drone has to land, or None. None until it has reported its motion, its battery or its flight.

        `attended_s` is the time at which it was last commanded. A stall of this process counts as a command.
        """
        if self.parameters.land_on_low_battery and self.is_battery_low(now_s):
            return Cause.BATTERY
        if now_s >= self.land_at:
            return Cause.ODOMETRY
        after_s = self.parameters.land_unattended
        if after_s and now_s >= after_s + max(attended_s, self._flying_since_s, self._observed.settled_at()):
            return Cause.UNATTENDED
        return None

    def start(self, now_s: float) -> None:
        """Begin a connection. After LONGEST_LANDING_S, the reports that required a landing are forgotten."""
        if now_s >= self.land_at + LONGEST_LANDING_S:
            self._observed.restart()
        if now_s >= self._charged_at + LONGEST_LANDING_S:
            self._low_since_s = None
        if now_s >= self._flight_at + LONGEST_LANDING_S:
            self.flies, self._flying_since_s = False, math.inf

    @property
    def is_grounded(self) -> bool:
        """Whether the vehicle has last reported that it does not fly."""
        return self._flight_at > -math.inf and not self.flies

    def flew(self, is_flying: bool, now_s: float) -> None:
        """Record a report of whether the vehicle flies."""
        self._flight_at, self.flies = now_s, is_flying
        self._flying_since_s = min(self._flying_since_s, now_s) if is_flying else math.inf

    def charged(self, charge: float, now_s: float) -> None:
        """Record a report of the battery's charge, a share."""
        self._charge, self._charged_at = charge, now_s
        if charge >= self.parameters.low_battery:
            self._low_since_s = None
        elif self._low_since_s is None:
            self._low_since_s = now_s

    def is_battery_low(self, now_s: float) -> bool:
        """Return whether the reported charge has been below `low_battery` for LOW_BATTERY_S."""
        since_s = self._low_since_s
        return since_s is not None and now_s - since_s >= LOW_BATTERY_S and self._charge < self.parameters.low_battery

    @property
    def takeoff_refusal(self) -> str:
        """Reason, a sentence, why a take-off is refused: the drone would land again. Empty if it may take off."""
        parameters = self.parameters
        if parameters.land_on_low_battery and self._low_since_s is not None and self._charge < parameters.low_battery:
            return (
                f"The battery has {self._charge:.0%} left: below {parameters.low_battery:.0%} (limits.low_battery) "
                "the drone would land again, as limits.land_on_low_battery is set."
            )
        return ""

    def limited(self, velocity: BodyVelocity, now_s: float) -> BodyVelocity:
        """Return the velocity within the limits. Its rotation is unchanged, and zero stays zero.

        Position limits apply only while the vehicle is not blind.
        """
        asked = velocity.forward, velocity.left, velocity.up
        allowed = self._slowed(asked)
        if self.parameters.need_odometry and any(asked) and not self.is_blind(now_s):
            allowed = self._inside(allowed, now_s)
        return velocity if allowed == asked else velocity.with_linear(allowed)

    def returning(self, velocity: BodyVelocity, now_s: float) -> BodyVelocity | None:
        """Return how a vehicle may fly although its place is doubted: level, slowly, and towards the start.

        None if the velocity leads outwards or the place is not even modelled.
        """
        motion, start = self._observed.newest, self._observed.start
        lasts = self.is_doubted(now_s) and now_s - motion.doubted_from >= BRAKED_S
        if not lasts or not motion.modelled or not start or motion.yaw is None:
            return None
        forward, left, _ = shortened((velocity.forward, velocity.left, 0.0), DOUBTED_SPEED)
        here = subtracted(motion.modelled, start)
        is_inward = dot(turned((forward, left, 0.0), motion.yaw), (here[0], here[1], 0.0)) < 0.0
        return velocity.with_linear(self._slowed((forward, left, 0.0))) if is_inward else None

    def _inside(self, velocity: Triple, now_s: float) -> Triple:
        """Return the velocity without the components that would leave the fence or the maximum height."""
        motion, start = self._observed.newest, self._observed.start
        if motion.position is None or start is None:
            return velocity  # only if the state has just changed: otherwise blind
        position, yaw = motion.position, motion.yaw or 0.0  # a maximum height alone needs no heading
        here, flown = subtracted(position, start), motion.velocity or _STILL
        ahead_s = now_s - motion.position_at + REACTION_S
        ground = 0.0 if motion.ground is None else motion.ground - start[2]
        world = turned(velocity, yaw)
        # The fastest command with which the vehicle still brakes before the edges, by Newton's method: an earlier
        # command in its place would alternate between too fast and too slow.
        for _ in range(_STEPS):
            for distance, outward in self._edges(added(here, scaled(world, ahead_s)), ground):
                allowed = allowed_speed(distance)
                if (excess := dot(world, outward) - allowed) > 0.0:
                    slope = BRAKING / max(allowed, _LEAST_SPEED) if distance > 0.0 else 1.0
                    world = added(world, scaled(outward, -excess / (1.0 + ahead_s * slope)))
        # A vehicle that is still faster than that.
        for distance, outward in self._edges(added(here, scaled(flown, ahead_s)), ground):
            is_faster = dot(flown, outward) > dot(world, outward) + _FASTER
            if is_faster and (excess := dot(world, outward) - allowed_speed(distance)) > 0.0:
                world = added(world, scaled(outward, -excess))
        return self._slowed(turned(world, -yaw))  # the return velocity was added

    def _slowed(self, velocity: Triple) -> Triple:
        return shortened(velocity, self.parameters.max_speed or FASTEST)

    @property
    def _fence_radius(self) -> float:
        """Radius of the fence less the way that the vehicle may have moved unseen, m."""
        return self.parameters.fence_radius - self._observed.unseen_m

    def _edges(self, place: Triple, ground: float) -> list[Edge]:
        """Return the edges of the active limits. `place` and `ground`, the ground's z, are relative to the start, m."""
        parameters, (x, y, z) = self.parameters, place
        edges = []
        if parameters.fence_radius and (way := math.hypot(x, y)):
            edges.append(Edge(self._fence_radius - way, (x / way, y / way, 0.0)))
        if parameters.max_height:
            edges.append(Edge(parameters.max_height - (z - ground), (0.0, 0.0, 1.0)))
        return edges


def _missing(needed: Mapping[str, float]) -> tuple[str, ...]:
    """Return the names of the measurements that were never reported."""
    return tuple(name for name, reported_at in needed.items() if reported_at == -math.inf)


def shortened(vector: Triple, longest: float) -> Triple:
    """Scale a vector down to a maximum length. Returns zeros if its length overflows."""
    length = math.hypot(*vector)
    return vector if length <= longest else scaled(vector, longest / length)


def allowed_speed(distance: float) -> float:
    """Return the largest speed towards an edge at a distance, m, in m/s; negative beyond the edge."""
    if distance <= 0.0:
        return max(distance, -RETURN_SPEED)
    return math.sqrt(2.0 * BRAKING * distance)
