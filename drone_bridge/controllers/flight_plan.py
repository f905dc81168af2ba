# SPDX-License-Identifier: Apache-2.0
"""Take off, fly a square at constant height, land: timed, and complete only when the drone is on the ground."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from geometry_msgs.msg import Twist
from rclpy.node import Node
from std_msgs.msg import Bool
from std_srvs.srv import SetBool, Trigger

from drone_bridge.controllers.behaviour import Behaviour
from drone_bridge.controllers.state_publisher import StatePublisher
from drone_bridge.controllers.timing import COMMAND_RATE, make_steady_timer, plan_clock
from drone_bridge.described import described
from drone_bridge.ros.parameters import DeclaredParameters, declarations, read
from drone_bridge.ros.qos import latched
from drone_bridge.ros.subscriptions import subscribe
from drone_bridge.ros.velocity_messages import as_published, cmd_vel_type

# Each leg's direction (forward, left): a square to the right hand, which ends where it began. The nose does not turn.
_LEGS = (("forward", 1.0, 0.0), ("right", 0.0, -1.0), ("backward", -1.0, 0.0), ("left", 0.0, 1.0))


@dataclass(frozen=True, slots=True)
class PlanParameters:
    """Shape and timing of the flight."""

    take_off_time: float = described(5.0, "Seconds from the response of takeoff until the drone is up.", 0.1, 60.0)
    take_off_patience: float = 10.0  # seconds for which a refused takeoff is retried
    landing_patience: float = 30.0  # seconds within which a landing must be complete
    leg_time: float = described(2.0, "Seconds per side of the square.", 0.1, 60.0)
    pause_time: float = described(2.5, "Seconds of hovering after each side, to come to rest.", 0.1, 60.0)
    speed: float = described(0.3, "Speed along a side, m/s.", 0.001, 1000.0)


class Call(NamedTuple):
    """A service to call: takeoff and land, or hover with its data."""

    service: str
    data: bool | None = None


class Velocity(NamedTuple):
    """A velocity on cmd_vel, body axes of REP 103."""

    forward: float
    left: float


class Stage(NamedTuple):
    """A part of the flight: an initial call, and then a velocity, or none, for a time in s.

    One `until_landed` is over as soon as the drone does not fly any more, and has failed after that time.
    """

    name: str
    call: Call
    duration_s: float
    velocity: Velocity | None = None
    until_landed: bool = False


class Step(NamedTuple):
    """What to do now: at most one call and one velocity."""

    call: Call | None = None
    velocity: Velocity | None = None


def square(parameters: PlanParameters) -> tuple[Stage, ...]:
    """Return the stages of the flight.

    Hover is pressed between the sides: it brakes, and if this controller should die, it holds the drone in place.
    """
    stages = [Stage("taking off", Call("takeoff"), parameters.take_off_time)]
    for name, forward, left in _LEGS:
        velocity = Velocity(parameters.speed * forward, parameters.speed * left)
        stages.append(Stage(name, Call("hover", False), parameters.leg_time, velocity))
        stages.append(Stage("hovering", Call("hover", True), parameters.pause_time))
    stages.append(Stage("landing", Call("land"), parameters.landing_patience, until_landed=True))
    # The next pilot finds the drone following commands.
    return (*stages, Stage("releasing hover", Call("hover", False), 0.0))


class FlightPlan:
    """The state of the flight. Call `update` regularly, and `answered` once for each call that it requests.

    A takeoff that is refused is tried again for a while, and then the flight is off; after any other refusal the drone
    lands.
    """

    RETRY_S = 1.0

    def __init__(self, parameters: PlanParameters) -> None:
        self._stages = square(parameters)
        self._patience_s = parameters.take_off_patience
        self._index = 0
        self._began_s: float | None = None  # when takeoff was first called
        self._call_due_s: float | None = None  # when the stage's call is to be made
        self._answered_s: float | None = None
        self._problem = ""
        #: Whether the drone flies, according to the bridge; None until it says so.
        self.is_flying: bool | None = None

    @property
    def has_begun(self) -> bool:
        return self._began_s is not None

    @property
    def is_over(self) -> bool:
        """Whether the flight has ended, successfully or not."""
        return self._index >= len(self._stages)

    @property
    def state(self) -> str:
        """The name of the current stage, `done` or `failed`."""
        if not self.is_over:
            return self._stages[self._index].name
        return "failed" if self._problem else "done"

    @property
    def problem(self) -> str:
        """Why the flight has failed; empty otherwise."""
        return self._problem

    def update(self, now_s: float) -> Step:
        if self._began_s is None:
            self._began_s = self._call_due_s = now_s
        if self.is_over:
            return Step()
        if self._answered_s is not None and self._is_stage_over(now_s - self._answered_s):
            self._go_to(self._index + 1, now_s)
        if self.is_over:
            return Step()
        stage = self._stages[self._index]
        if self._call_due_s is not None and now_s >= self._call_due_s:
            self._call_due_s = None
            return Step(stage.call)
        return Step(velocity=stage.velocity if self._answered_s is not None else None)

    def answered(self, now_s: float, success: bool, message: str) -> None:
        """Handle the response to the latest call that `update` returned."""
        if self.is_over:
            return
        call = self._stages[self._index].call
        if success:
            self._answered_s = now_s
        elif call.service == "takeoff":
            assert self._began_s is not None
            if now_s + self.RETRY_S <= self._began_s + self._patience_s:
                self._call_due_s = now_s + self.RETRY_S
            else:
                self.give_up(f"takeoff was refused: {message}")
        else:
            self._problem = self._problem or f"{call.service} was refused: {message}"
            landing = next(index for index, stage in enumerate(self._stages) if stage.call.service == "land")
            self._go_to(landing if self._index < landing else len(self._stages), now_s)

    def give_up(self, problem: str) -> None:
        """Abort the flight without further calls."""
        if not self.is_over:
            self._problem = self._problem or problem
            self._index = len(self._stages)

    def _is_stage_over(self, since_answer_s: float) -> bool:
        stage = self._stages[self._index]
        if stage.until_landed and self.is_flying is False:
            return True
        is_time_over = since_answer_s >= stage.duration_s
        if is_time_over and stage.until_landed:
            self._problem = self._problem or f"the drone was not seen on the ground within {stage.duration_s:g} s"
        return is_time_over

    def _go_to(self, index: int, now_s: float) -> None:
        self._index = index
        self._call_due_s, self._answered_s = now_s, None


# The behaviour `flight_plan` with its topics and services: takeoff, cmd_vel, hover, land.


NAME = "flight_plan"
PARAMETERS = (*declarations(PlanParameters, NAME),)


class FlightPlanBehaviour(Behaviour):
    """Flies the plan once, as soon as a bridge offers its services."""

    def __init__(self, node: Node, parameters: DeclaredParameters) -> None:
        self._node = node
        self._plan = FlightPlan(read(PlanParameters, NAME, parameters))
        self._is_left = False
        self._now = plan_clock(node)
        self._velocity_publisher = node.create_publisher(cmd_vel_type(parameters), "cmd_vel", 1)
        self._state_publisher = StatePublisher(node, NAME)
        self._clients: dict[str, Any] = {
            "takeoff": node.create_client(Trigger, "takeoff"),
            "land": node.create_client(Trigger, "land"),
            "hover": node.create_client(SetBool, "hover"),
        }
        subscribe(node, Bool, "flying", self._on_flying, latched())
        make_steady_timer(node, 1 / COMMAND_RATE, self._on_timer)

    def leave(self) -> None:
        self._is_left = True

    def _on_flying(self, message: Bool) -> None:
        self._plan.is_flying = message.data

    def _on_timer(self) -> None:
        if self._is_left:
            return
        if not all(client.service_is_ready() for client in self._clients.values()):
            if not self._plan.has_begun:
                return
            self._plan.give_up("the bridge is gone")
        if not self._plan.is_over:
            step = self._plan.update(self._now())
            if step.call:
                self._call(step.call)
            if step.velocity:
                twist = Twist()
                twist.linear.x, twist.linear.y = step.velocity
                self._velocity_publisher.publish(as_published(twist, self._velocity_publisher, self._node))
        self._state_publisher.publish(self._plan.state, self._plan.problem or "by the clock")

    def _call(self, call: Call) -> None:
        request = Trigger.Request() if call.data is None else SetBool.Request(data=call.data)
        self._clients[call.service].call_async(request).add_done_callback(self._on_answer)

    def _on_answer(self, future: Any) -> None:
        answer = future.result()
        self._plan.answered(self._now(), answer.success, answer.message)
        if not answer.success:
            self._node.get_logger().warning(f"Refused: {answer.message}")


start = FlightPlanBehaviour
