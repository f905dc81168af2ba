# SPDX-License-Identifier: Apache-2.0
"""Follows waypoints on straight lines, by odometry. Any of x, y, z and yaw may be omitted."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from enum import Enum

import numpy as np
from nav_msgs.msg import Odometry
from rclpy.node import Node

from drone_bridge.controllers.behaviour import Behaviour
from drone_bridge.controllers.commands import VelocityCommands
from drone_bridge.controllers.messages import ErrorLog, read_pose
from drone_bridge.controllers.state_publisher import StatePublisher
from drone_bridge.controllers.timing import COMMAND_RATE, make_steady_timer
from drone_bridge.described import described
from drone_bridge.motion.matrices import Matrix, Vector, angles_from_rotation, limited, rotation_from_angles
from drone_bridge.msg import DroneProperties
from drone_bridge.ros.parameters import DeclaredParameters, ParameterDeclaration, declarations, read
from drone_bridge.ros.qos import latched
from drone_bridge.ros.subscriptions import subscribe

NAMES = ("x", "y", "z", "yaw")
# Getting back to the line may take this share of the speed, so that there is always some left to go on.
MAX_ACROSS = 0.7


@dataclass(frozen=True, slots=True)
class WaypointParameters:
    """Speeds, gains and tolerances."""

    position_tolerance: float = described(0.3, "Distance within which a waypoint is reached, m.", 0.001, 100.0)
    yaw_tolerance: float = described(
        0.15, "Angle from its yaw within which a waypoint is reached, rad.", 0.001, math.pi
    )
    hold_time: float = described(0.0, "Seconds to stay at a waypoint before the next one.", 0.0, 3600.0)
    max_speed: float = described(0.5, "Maximum speed, m/s.", 0.001, 100.0)
    max_climb_speed: float = described(0.5, "Maximum climb and sink rate, m/s.", 0.001, 100.0)
    max_turn_rate: float = described(0.5, "Radians per second.", 0.001, 20.0)
    position_gain: float = described(0.8, "Speed per distance left, 1/s.", 0.01, 20.0)
    yaw_gain: float = 1.0  # turn rate per angle left, 1/s
    loop: bool = described(False, "Continue with the first waypoint after the last one.")


@dataclass(frozen=True, slots=True)
class Waypoint:
    """A pose in the frame of the odometry: x, y, z in m, yaw in rad to the left of x. None is free."""

    x: float | None = None
    y: float | None = None
    z: float | None = None
    yaw: float | None = None

    @classmethod
    def read(cls, text: str) -> Waypoint:
        """Parse for instance 'x=2 y=-1.5 yaw=1.57'. Raises ValueError."""
        values: dict[str, float] = {}
        for part in text.split():
            name, _, number = part.partition("=")
            if name not in NAMES or name in values:
                raise ValueError(
                    f"the waypoint '{text}' has '{part}', and consists of x=, y=, z= (m) and yaw= (rad), each once "
                    f"at most"
                )
            try:
                values[name] = float(number)
            except ValueError:
                values[name] = math.nan
            if not math.isfinite(values[name]):
                raise ValueError(f"the waypoint '{text}' has '{part}', and {name} has to be a finite number")
        if not values:
            raise ValueError("a waypoint is empty, and needs at least one of x=, y=, z= (m) and yaw= (rad)")
        return cls(**values)

    def __str__(self) -> str:
        """Return it as people read it: x 2.00 y -1.50 m, yaw 90°."""
        held = ((name, value) for name, value in (("x", self.x), ("y", self.y), ("z", self.z)) if value is not None)
        place = " ".join(f"{name} {value:.2f}" for name, value in held)
        yaw = "" if self.yaw is None else f"yaw {math.degrees(self.yaw):.0f}°"
        return ", ".join(filter(None, (place and f"{place} m", yaw)))

    def place(self, elsewhere: Vector) -> Vector:
        """Return its position, with free coordinates taken from another one."""
        held = (self.x, self.y, self.z)
        return np.array([free if value is None else value for value, free in zip(held, elsewhere, strict=True)])


class WaypointState(Enum):
    """Phase of the tour."""

    WAITING = "waiting"
    GOING = "going"
    HOLDING = "holding"
    DONE = "done"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Decision:
    """The command, in body axes of REP 103: velocity in m/s, angular velocity in rad/s about x, y, z."""

    state: WaypointState
    reason: str
    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    turn: tuple[float, float, float] = (0.0, 0.0, 0.0)
    distance: float = math.nan  # m, of what is held


class Waypoints:
    """The state of the tour. Call `update` regularly."""

    def __init__(self, parameters: WaypointParameters, waypoints: tuple[Waypoint, ...]) -> None:
        """Begin before the first of the waypoints. Raises ValueError if there is none."""
        if not waypoints:
            raise ValueError("there are no waypoints, and there has to be at least one")
        self._parameters = parameters
        self._waypoints = waypoints
        self._index = 0
        self._line_start: Vector | None = None  # where the straight line to the waypoint begins
        self._reached_s: float | None = None
        self._is_done = False

    @property
    def index(self) -> int:
        """Which of the waypoints it goes to, or holds."""
        return self._index

    def interrupted(self) -> None:
        """Start a new line from the vehicle's position, after a gap in the odometry."""
        self._line_start = self._reached_s = None

    def update(self, now_s: float, position: Vector, rotation: Matrix) -> Decision:
        """Return the decision at a position (m) with a rotation from body to world. `now_s` does not run back."""
        if self._line_start is None:
            self._line_start = position
        _, _, yaw = angles_from_rotation(rotation)
        if self._is_reached(position, yaw):
            self._reached_s = now_s if self._reached_s is None else self._reached_s
            if now_s - self._reached_s >= self._parameters.hold_time:
                self._go_on(position)
        else:
            self._reached_s = None
        waypoint = self._waypoints[self._index]
        error = waypoint.place(position) - position
        velocity = rotation.T @ self._velocity(error, waypoint.place(self._line_start) - self._line_start)
        turn = rotation.T @ np.array([0.0, 0.0, self._turn_rate(waypoint, yaw)])
        state, reason = self._state(waypoint)
        return Decision(state, reason, _three(velocity), _three(turn), float(np.linalg.norm(error)))

    def _is_reached(self, position: Vector, yaw: float) -> bool:
        waypoint = self._waypoints[self._index]
        away = float(np.linalg.norm(waypoint.place(position) - position))
        turned = abs(_yaw_error(waypoint, yaw))
        return away <= self._parameters.position_tolerance and turned <= self._parameters.yaw_tolerance

    def _go_on(self, position: Vector) -> None:
        """Select the next waypoint; the last one stays, unless they form a loop."""
        if self._index + 1 == len(self._waypoints) and not self._parameters.loop:
            self._is_done = True
            return
        # From the waypoint, not from the edge of its tolerance.
        self._line_start = self._waypoints[self._index].place(position)
        self._index = (self._index + 1) % len(self._waypoints)
        self._reached_s = None

    def _velocity(self, error: Vector, line: Vector) -> Vector:
        """Return the velocity in the world: along the line, and back to it if the vehicle is beside it."""
        wanted = self._parameters.position_gain * error
        limit = self._parameters.max_speed
        length = float(np.linalg.norm(line))
        direction = line / length if length > 1e-6 else np.zeros(3)
        along = float(wanted @ direction)
        across = limited(wanted - along * direction, MAX_ACROSS * limit)
        most_along = math.sqrt(limit**2 - float(across @ across))
        velocity = across + max(-most_along, min(most_along, along)) * direction
        # Slower altogether, rather than beside the line, where it climbs too steeply.
        return velocity * min(1.0, self._parameters.max_climb_speed / max(abs(float(velocity[2])), 1e-9))

    def _turn_rate(self, waypoint: Waypoint, yaw: float) -> float:
        limit = self._parameters.max_turn_rate
        return max(-limit, min(limit, self._parameters.yaw_gain * _yaw_error(waypoint, yaw)))

    def _state(self, waypoint: Waypoint) -> tuple[WaypointState, str]:
        which = f"waypoint {self._index + 1} of {len(self._waypoints)}: {waypoint}"
        if self._is_done:
            return WaypointState.DONE, f"stays at {which}"
        if self._reached_s is not None:
            return WaypointState.HOLDING, f"for {self._parameters.hold_time:g} s at {which}"
        return WaypointState.GOING, f"to {which}"


def _yaw_error(waypoint: Waypoint, yaw: float) -> float:
    """Return the shorter turn to the left, rad."""
    return 0.0 if waypoint.yaw is None else math.remainder(waypoint.yaw - yaw, math.tau)


def _three(vector: Vector) -> tuple[float, float, float]:
    x, y, z = vector.tolist()
    return x, y, z


# The behaviour `waypoints` with its topics: odometry in, velocities out.


NAME = "waypoints"
PARAMETERS = (
    ParameterDeclaration(
        f"{NAME}.points",
        ["x=2 y=0", "x=2 y=2", "x=0 y=2", "x=0 y=0"],
        "The waypoints, in the frame of the odometry: for instance 'x=2 y=0 z=-1 yaw=1.57', in m "
        "and rad. Omitted axes are free.",
    ),
    ParameterDeclaration(
        f"{NAME}.odometry_timeout", 0.5, "Seconds without odometry after which the vehicle is stopped.", (0.05, 60.0)
    ),
    *declarations(WaypointParameters, NAME),
)


class WaypointsBehaviour(Behaviour):
    """Drives from waypoint to waypoint while there is odometry; stops otherwise."""

    def __init__(self, node: Node, parameters: DeclaredParameters) -> None:
        """Raises ValueError with a sentence for invalid waypoints."""
        self._node = node
        try:
            self._points = tuple(map(Waypoint.read, parameters[f"{NAME}.points"]))
            self._parameters = read(WaypointParameters, NAME, parameters)
            self._waypoints = Waypoints(self._parameters, self._points)
        except ValueError as error:
            raise ValueError(f"{NAME}.points can't be used: {error}.") from None
        self._odometry_timeout_s = parameters[f"{NAME}.odometry_timeout"]
        self._measured: tuple[Vector, Matrix] | None = None
        self._measured_s = -math.inf
        self._is_left = False
        self._errors = ErrorLog(node)
        self._commands = VelocityCommands(node, parameters)
        self._state_publisher = StatePublisher(node, NAME, logs_reasons=True)
        subscribe(node, Odometry, "odom", self._on_odometry, 1)
        self._is_announced = False
        subscribe(node, DroneProperties, "drone_properties", self._on_properties, latched())
        make_steady_timer(node, 1 / COMMAND_RATE, self._on_timer)

    def leave(self) -> None:
        self._is_left = True
        self._commands.leave()

    def _on_odometry(self, message: Odometry) -> None:
        try:
            position, angles = read_pose(message, "odom")
        except ValueError as error:
            self._errors.log(f"Odometry can't be used: {error}")
            return
        self._state_publisher.frame_id = message.child_frame_id
        self._measured, self._measured_s = (position, rotation_from_angles(*angles)), time.monotonic()

    def _on_properties(self, _: DroneProperties) -> None:
        """Restart with the first waypoint when a drone is announced again, as its simulation was restarted."""
        if self._is_announced:
            self._waypoints = Waypoints(self._parameters, self._points)
            self._measured = None
        self._is_announced = True

    def _on_timer(self) -> None:
        if self._is_left:
            return
        now_s = time.monotonic()
        if self._measured is None:
            self._publish_state(Decision(WaypointState.WAITING, "for odometry"))
            return
        if now_s - self._measured_s > self._odometry_timeout_s:
            self._waypoints.interrupted()
            decision = Decision(WaypointState.STOPPED, f"no odometry for {self._odometry_timeout_s:g} s")
        else:
            decision = self._waypoints.update(now_s, *self._measured)
        self._commands.publish(decision.velocity, decision.turn)
        self._publish_state(decision)

    def _publish_state(self, decision: Decision) -> None:
        self._state_publisher.publish(decision.state.value, decision.reason, decision.distance)


start = WaypointsBehaviour
