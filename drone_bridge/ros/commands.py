# SPDX-License-Identifier: Apache-2.0
"""Commands from topics: how old they may be, for how long they hold, and the newest valid one for the link's thread."""

import contextlib
import functools
import math
import operator
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point32, Polygon, PolygonStamped, Twist, TwistStamped, Vector3
from rclpy.node import Node

from drone_bridge.motion.limits import LimitParameters, Limits, Rank, ruling
from drone_bridge.motion.tilt_control import Shares
from drone_bridge.msg import CommandAxes
from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.common_parameters import frame_names
from drone_bridge.ros.frames import FrameNames
from drone_bridge.ros.parameters import DeclaredParameters, ParameterDeclaration, declarations, read
from drone_bridge.ros.stall_watch import StreamSettling
from drone_bridge.ros.time import is_time_simulated, seconds_between, stamp_numbers
from drone_bridge.ros.topics import NO_EVENTS, PUBLISHER_ERRORS, command_stream, latched
from drone_bridge.ros.vehicle_node import VehicleNode
from drone_bridge.ros.velocity_messages import OtherTypes, cmd_vel_type, velocity_frames

# How old a stamped command is. See docs/network.md, "Hosts whose clocks differ".


#: How far clocks may differ that are synchronized, s: a stamp that far ahead of our time counts as current.
CLOCK_TOLERANCE_S = 0.1


class CommandAges:
    """Refuses the stamped commands of one topic that are older than the parameter `command_timeout` allows.

    A command whose stamp is ahead of this machine's clock is refused, too, as its age can't be known.
    """

    def __init__(
        self,
        node: Node,
        topic: str,
        parameters: DeclaredParameters,
        *,
        now: Callable[[], Time] | None = None,
        prefix: str = "",
    ) -> None:
        """Prepare to judge commands.

        Args:
            node: which has subscribed to the topic.
            topic: of the commands.
            parameters: the node's, `command_timeout` among them.
            now: the clock of the stamps if it is not the node's; all publishers then get it from the vehicle.
            prefix: of those parameters' names.
        """
        self._logger = node.get_logger()
        self._topic = topic
        self._parameters = parameters
        self._timeout_name = f"{prefix}command_timeout"
        self._now = now or (lambda: node.get_clock().now().to_msg())
        #: Whether stamps come from the clock of a machine, and not from one that all share.
        self._are_by_machines = now is None and not is_time_simulated(node)
        self._has_told_of_zero = False

    def stamp_of(self, message: Any) -> Time | None:
        """Return when a command was given, None if it does not say that: zero is none, as in ros2_controllers.

        While simulated time begins, zero is a time.
        """
        stamp: Time | None = message.header.stamp if hasattr(message, "header") else None
        if stamp is None or stamp != Time():
            return stamp
        is_time = not self._are_by_machines
        if is_time and seconds_between(self._now(), stamp) <= self._parameters[self._timeout_name]:
            return stamp
        if not self._has_told_of_zero:
            self._has_told_of_zero = True
            self._logger.warning(
                f"Commands on {self._topic} have a stamp of zero, which counts as none: their age is judged by their "
                "arrival. This is logged once."
            )
        return None

    def refusal(self, stamp: Time | None) -> str | None:
        """Return why a command that has just arrived is refused, or None; `stamp` is from `stamp_of`."""
        if stamp is None:
            return None
        allowed_s = self._parameters[self._timeout_name]
        age_s = seconds_between(self._now(), stamp)
        if self._are_by_machines and age_s < -CLOCK_TOLERANCE_S:
            return f"it is stamped {-age_s:.3f} s ahead of this machine's clock, so that its age can't be known."
        return (
            f"it is {age_s:.3f} s old, and {allowed_s:g} s ({self._timeout_name}) are allowed."
            if age_s > allowed_s
            else None
        )


# Passes the newest command from the executor to the link's thread.


CommandT = TypeVar("CommandT")


@dataclass(frozen=True, slots=True)
class Arrival(Generic[CommandT]):
    """A command and its arrival time, by time.monotonic."""

    command: CommandT
    arrived_s: float
    taken_s: float = field(default_factory=elapsed_s)
    """When it arrived, by a clock that counts suspension."""

    def is_fresh(self, timeout_s: float) -> bool:
        """Return whether it still holds, where none does for longer than `timeout_s`."""
        return elapsed_s() - self.taken_s <= timeout_s

    def expires_s(self, timeout_s: float) -> float:
        """Return until when it holds, by time.monotonic, where none does for longer than `timeout_s`."""
        return self.arrived_s + timeout_s


class Mailbox(Generic[CommandT]):
    """Holds the newest command while it is fresh. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        # Replaced as one: `newest` is asked per frame and needs no lock.
        self._latest: Arrival[CommandT] | None = None
        # The newest one with a stamp: one without does not keep a frame from its answer.
        self._answer: tuple[CommandT | None, tuple[int, int] | None] = (None, None)
        self._is_closed = False

    def put(self, command: CommandT, stamp: tuple[int, int] | None = None) -> None:
        """Replace the command. `stamp` is the (sec, nanosec) of the frame that it answers."""
        with self._changed:
            self._latest = Arrival(command, time.monotonic())
            if stamp is not None:
                self._answer = command, stamp
            self._changed.notify_all()

    @property
    def has_any(self) -> bool:
        """Whether there is a command, fresh or not."""
        return self._latest is not None

    def newest(self, timeout_s: float) -> Arrival[CommandT] | None:
        """Return the command with its arrival time, if it arrived within the last `timeout_s`."""
        latest = self._latest
        return latest if latest and latest.is_fresh(timeout_s) else None

    def wait_for(self, stamp: tuple[int, int], timeout_s: float) -> CommandT | None:
        """Wait for the command that answers the frame of this stamp; return None after the timeout or on `close`."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._answer[1] == stamp, timeout_s)
            command, answered = self._answer
            return command if answered == stamp and not self._is_closed else None

    def has_unstamped(self, timeout_s: float) -> bool:
        """Return whether the newest command is fresh and answers no frame in particular."""
        with self._changed:
            newest = self.newest(timeout_s)
            return newest is not None and newest.command is not self._answer[0]

    def forget(self) -> None:
        """Forget the command."""
        with self._changed:
            self._latest, self._answer = None, (None, None)

    def clear(self) -> None:
        """Forget the command, and allow waiting again after `close`."""
        with self._changed:
            self._latest, self._answer, self._is_closed = None, (None, None), False

    def close(self) -> None:
        """End all waiting."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()


# Who decides what a vehicle does, and what of a commanded velocity it is told: motion/limits.py for a bridge.


_LIMITS = "limits"
#: The topic that says where the fence is, a convex polygon in the frame of the odometry.
FENCE = "fence"
#: Of drones, m/s: teleop's keys and Nav2's defaults stay below it.
DRONE_MAX_SPEED = 2.0
_DRONE_LANDS_AFTER_S = 5.0
#: How fast a drone sinks that has to land and has no button for it, m/s.
LANDING_SPEED = 0.5


def limit_parameters(
    *, is_drone: bool, can_climb: bool = True, tells_battery: bool = False
) -> tuple[ParameterDeclaration, ...]:
    """Return the parameters of the limits that a vehicle can have, with the defaults of a drone or of another one.

    Args:
        is_drone: whether it flies, and so can land.
        can_climb: whether it follows a vertical speed.
        tells_battery: whether its charge is known (`ObservedMotion.battery`).
    """
    drones = {"max_speed": DRONE_MAX_SPEED, "land_after": _DRONE_LANDS_AFTER_S} if is_drone else {}
    has = {"max_height": can_climb, "land_after": is_drone, "low_battery": tells_battery}
    has["land_on_low_battery"] = is_drone and tells_battery
    replaced = {"fence_radius": (f"{_LIMITS}.fence_x", f"{_LIMITS}.fence_y")}
    return tuple(
        replace(
            each,
            default=drones.get(each.name.removeprefix(f"{_LIMITS}."), each.default),
            replaces=replaced.get(each.name.removeprefix(f"{_LIMITS}."), ()),
        )
        for each in declarations(LimitParameters, _LIMITS)
        if has.get(each.name.removeprefix(f"{_LIMITS}."), True)
    )


@dataclass(frozen=True, slots=True, eq=False)
class Asked(Generic[CommandT]):
    """A command as it was asked for."""

    command: CommandT
    velocity: Twist | None = None
    """What it was made from, where that is a velocity; a raw command has none, and no limits."""


class Ruler(Generic[CommandT]):
    """Decides for the link's thread what of the newest command is sent, by `Rank`."""

    def __init__(self, node: VehicleNode) -> None:
        """Read the parameters; a node without those of `limit_parameters` has no limits."""
        has_limits = f"{_LIMITS}.max_speed" in node.parameters
        self._node = node
        parameters = read(LimitParameters, _LIMITS, node.parameters) if has_limits else LimitParameters()
        self._limits = Limits(parameters, node.observed)
        #: Makes a command of a velocity.
        self.read: Callable[[Twist], CommandT] | None = None
        #: Whether the vehicle follows linear.z, and so can sink.
        self.can_sink = False
        #: Lands the vehicle, and returns the outcome in a sentence, if it has a button for that.
        self.land: Callable[[], Awaitable[str]] | None = None
        self._is_landing = False
        self._fence: Any = None  # its publisher, until the fence is told
        if has_limits:
            if parameters.fence_radius:
                self._fence = node.create_publisher(PolygonStamped, FENCE, latched(), event_callbacks=NO_EVENTS)
                node.cleanup.callback(node.destroy_publisher, self._fence)
            node.each_second(self._report)

    def rank(self, asked: Asked[CommandT] | None) -> Rank:
        """Return who decides, where this is the newest command that is fresh."""
        now_s, hold = time.monotonic(), self._node.hold
        is_velocity = asked is not None and asked.velocity is not None
        return ruling(
            {
                Rank.HOLD: hold.is_held,
                Rank.HELM: hold.is_at_helm,
                Rank.LANDING: self._limits.must_land(now_s),
                # Below the helm: a person sees the vehicle, and brings it back where it does not know itself.
                Rank.BLIND: is_velocity and self._limits.is_blind(now_s),
                Rank.COMMAND: asked is not None,
            }
        )

    def settled(self, asked: Asked[CommandT] | None) -> CommandT | None:
        """Return what is sent now, None for the neutral command."""
        rank = self.rank(asked)
        if rank is Rank.LANDING and self.read and self.can_sink and not self.land:
            return self.read(Twist(linear=Vector3(z=-LANDING_SPEED)))
        return self._limited(asked) if asked and rank in (Rank.HELM, Rank.COMMAND) else None

    def _limited(self, asked: Asked[CommandT]) -> CommandT:
        twist = asked.velocity
        if twist is None or self.read is None:
            return asked.command
        before = twist.linear.x, twist.linear.y, twist.linear.z
        x, y, z = self._limits.limited(before, time.monotonic())
        if (x, y, z) == before:
            return asked.command
        self._node.statistics.counts["limited commands"] += 1
        return self.read(Twist(linear=Vector3(x=x, y=y, z=z), angular=twist.angular))

    def _report(self) -> None:
        """Say what limits the vehicle, and have the executor press the button that lands it."""
        self._tell_fence()
        now_s, limits, update = time.monotonic(), self._limits, self._node.reports.update_condition
        is_low, must_land = limits.is_battery_low, limits.must_land(now_s)
        is_blind = self._node.observed.newest is not None and limits.is_blind(now_s)
        charge = f"the battery has less than {limits.parameters.low_battery:.0%} left (limits.low_battery)"
        update("battery", charge if is_low else None, "land")
        blind = "the vehicle's odometry is missing, which its fence or maximum height needs, so it gets no velocities"
        update("odometry", blind if is_blind else None, "take the helm, or wait for the landing")
        update("landing", "it lands by itself" if must_land else None, "hold it, or take the helm, to prevent that")
        is_due = must_land and not self._is_landing and self.rank(None) is Rank.LANDING
        if is_due and self.land and (executor := self._node.executor):
            self._is_landing = True
            executor.create_task(self._land, self.land)  # as it takes long

    async def _land(self, land: Callable[[], Awaitable[str]]) -> None:
        try:
            self._node.warn(await land())
        except ValueError as error:
            self._node.warn(f"The vehicle has to land, and does not: {error}")
        finally:
            self._is_landing = False

    def _tell_fence(self) -> None:
        """Publish where the fence is, once, as soon as the vehicle has told where it began."""
        if self._fence and (corners := self._limits.fence):
            message = PolygonStamped(polygon=Polygon(points=[Point32(x=x, y=y) for x, y in corners]))
            message.header.frame_id = frame_names(self._node.parameters, FrameNames).odom
            message.header.stamp = self._node.get_clock().now().to_msg()
            with contextlib.suppress(*PUBLISHER_ERRORS):
                self._fence.publish(message)
            self._fence = None


# Commands from topics: stale and non-finite ones are refused, the newest valid one is kept.


#: Whatever a controller's rounding errors ask for, m/s or rad/s, is nothing that anybody wants.
ROUNDING = 1e-6
#: What a Twist can ask for, with its unit.
TWIST_AXES = {
    **{f"linear.{axis}": "m/s" for axis in "xyz"},
    **{f"angular.{axis}": "rad/s" for axis in "xyz"},
}


def shares_from_axes(message: CommandAxes) -> Shares:
    """Return what a cmd_axes says."""
    return Shares(message.thrust, message.pitch, message.roll, message.yaw)


def axes_from_shares(shares: Shares, stamp: Time, frame_id: str) -> CommandAxes:
    """Return shares as a cmd_axes, along and about the axes of a frame."""
    message = CommandAxes(thrust=shares.thrust, pitch=shares.pitch, roll=shares.roll, yaw=shares.yaw)
    message.header.stamp, message.header.frame_id = stamp, frame_id
    return message


class CommandIntake(Generic[CommandT]):
    """Subscribes to the command topics of a vehicle and keeps the newest valid command."""

    def __init__(
        self,
        node: VehicleNode,
        now: Callable[[], Time] | None = None,
        on_command: Callable[[], None] = lambda: None,
        *,
        holds_zero: bool = False,
    ) -> None:
        """Prepare to take commands.

        Args:
            node: whose topics they come from.
            now: the clock of the stamps, if that is not a machine's clock.
            on_command: called in the executor when there is a new command.
            holds_zero: whether a zero from a helm is flown, as it holds the vehicle better than the neutral command.
        """
        self._node = node
        self._on_command = on_command
        self._holds_zero = holds_zero
        self._now = now
        self.mailbox: Mailbox[Asked[CommandT]] = Mailbox()
        #: Who decides, and within which limits.
        self.ruler: Ruler[CommandT] = Ruler(node)
        self._followed: Arrival[Asked[CommandT]] | None = None
        self._overruled_until_s = 0.0
        self._warned_axes: set[str] = set()
        self._helm_stamp: Time | None = None
        self._hold = node.hold
        node.hold.when_set(self._forget)

    @property
    def is_held(self) -> bool:
        """Whether the vehicle is held: it gets the neutral command, and no other."""
        return self._hold.is_held

    def newest(self) -> CommandT | None:
        """Return what is to be sent now, by `Rank` and within the limits; None for the neutral command."""
        arrival = self._newest_asked()
        return self.ruler.settled(arrival.command if arrival else None)

    def newest_arrival(self) -> Arrival[CommandT] | None:
        """Return the same with the arrival time of the newest command, which it follows; None without one."""
        arrival = self._newest_asked()
        command = self.ruler.settled(arrival.command) if arrival else None
        if arrival is None or command is None:
            return None
        return Arrival(command, arrival.arrived_s, arrival.taken_s)

    def wait_for(self, stamp: tuple[int, int], timeout_s: float) -> CommandT | None:
        """Wait for the command that answers the frame of this stamp, see `Mailbox`; return what is sent of it."""
        asked = self.mailbox.wait_for(stamp, timeout_s)
        return self.ruler.settled(asked) if asked else None

    def follow(self) -> CommandT | None:
        """Return what is to be sent now; the waiting time of a command is measured once."""
        arrival = self._newest_asked()
        if arrival and arrival is not self._followed and not self.is_held:
            self._followed = arrival
            self._node.statistics.took("command received to sent", time.monotonic() - arrival.arrived_s)
        return self.ruler.settled(arrival.command if arrival else None)

    def _newest_asked(self) -> Arrival[Asked[CommandT]] | None:
        # Called per frame: no parameter is looked up before the first command.
        return self.mailbox.newest(self._node.parameters["command_timeout"]) if self.mailbox.has_any else None

    def take_limited_velocities(
        self, read: Callable[[Twist], tuple[CommandT, bool]], follows: Collection[str] = tuple(TWIST_AXES)
    ) -> None:
        """Subscribe as `take_velocities` does; `read` also returns whether the Twist was within the limits."""

        def read_and_count(twist: Twist) -> CommandT:
            command, was_within = read(twist)
            self._node.statistics.counts["clamped commands"] += not was_within
            return command

        self.take_velocities(read_and_count, follows)
        self.ruler.read = lambda twist: read(twist)[0]

    def take_axes(self, read: Callable[[Shares], tuple[CommandT, bool]]) -> None:
        """Subscribe to cmd_axes; `read` converts shares, and returns whether they were within the limits."""

        def read_and_count(message: CommandAxes) -> CommandT:
            command, was_within = read(shares_from_axes(message))
            self._node.statistics.counts["clamped commands"] += not was_within
            return command

        self.take("cmd_axes", CommandAxes, read_and_count)

    def take_velocities(
        self,
        read: Callable[[Twist], CommandT],
        follows: Collection[str] = tuple(TWIST_AXES),
        read_helm: Callable[[Twist], CommandT] | None = None,
    ) -> None:
        """Subscribe to cmd_vel, cmd_vel_stamped and ~/helm; `read` converts a Twist to a command.

        The second takes precedence over the first; the third is for a person at a stick, who locks out all others (see
        `Hold`), and its Twist is a velocity, converted by `read_helm` where `read` takes it for something else, which
        has no limits then. `follows` names the TWIST_AXES that the vehicle can move along or about. A command for
        others is logged once.
        """

        def read_supported(twist: Twist) -> Asked[CommandT]:
            self._warn_of_unsupported_axes(twist, follows)
            return Asked(read(twist), None if read_helm else twist)

        def read_stick(twist: Twist) -> Asked[CommandT]:
            return Asked(read_helm(twist), twist) if read_helm else read_supported(twist)

        self.ruler.read, self.ruler.can_sink = read_helm or read, "linear.z" in follows
        parameters = self._node.parameters
        turn = velocity_frames(parameters, lambda: self._node.observed.yaw).in_body
        cmd_vel = cmd_vel_type(parameters)
        self._take("~/helm", TwistStamped, read_stick, turn, is_helm=True)  # first, in the executor
        self._take("cmd_vel", cmd_vel, read_supported, turn)
        self._take("cmd_vel_stamped", TwistStamped, read_supported, turn, overrules=True)
        self._node.each_second(OtherTypes(self._node, "cmd_vel", cmd_vel).tell_of_publishers)

    def _warn_of_unsupported_axes(self, twist: Twist, follows: Collection[str]) -> None:
        asked = {axis: value for axis, value in _floats(twist) if abs(value) > ROUNDING and axis not in follows}
        if not asked:
            return
        self._node.statistics.counts["commands for axes that it lacks"] += 1
        if asked.keys() <= self._warned_axes:
            return
        self._warned_axes |= asked.keys()
        wanted = ", ".join(f"{axis} = {value:g} {TWIST_AXES[axis]}" for axis, value in asked.items())
        self._node.warn(
            f"cmd_vel asks for {wanted}, which this vehicle can't do; it follows {', '.join(follows)}. The rest of the "
            f"command is followed. This is logged once."
        )

    def take(self, topic: str, message_type: type, read: Callable[[Any], CommandT]) -> None:
        """Subscribe to raw commands, which have no limits; one that is older than `command_timeout` is refused."""
        self._take(topic, message_type, lambda message: Asked(read(message)), lambda message: message)

    def _take(
        self,
        topic: str,
        message_type: type,
        read: Callable[[Any], Asked[CommandT]],
        turn: Callable[[Any], Any],
        *,
        overrules: bool = False,
        is_helm: bool = False,
    ) -> None:
        """Subscribe to a topic; a message whose stamp is older than `command_timeout` is refused, see CommandAges.

        `turn` gets a message that is fresh, and returns it in the vehicle's axes for `read`, or raises ValueError with
        a sentence. After a command on a topic that `overrules`, those on other topics are ignored for
        `command_timeout`. `Hold` decides whose are followed.
        """
        ages = CommandAges(self._node, topic, self._node.parameters, now=self._now)
        settling = StreamSettling()

        def receive(message: Any) -> None:
            stamp = ages.stamp_of(message)
            refusal = _non_finite_field(message) or settling.refusal() or ages.refusal(stamp)
            if not refusal:
                try:
                    message = turn(message)
                except ValueError as error:
                    refusal = str(error)
            if refusal:
                self._node.count_and_warn("refused commands", f"A command on {topic} was refused: {refusal}")
                return
            if is_helm:
                self._helm_stamp = stamp
            elif stamp is not None and stamp == self._helm_stamp:
                return  # a copy, for whoever has no topic for helms
            if not self._hold.admits(topic, is_helm=is_helm):
                return
            now_s = time.monotonic()
            if overrules:
                self._overruled_until_s = now_s + self._node.parameters["command_timeout"]
            elif not is_helm and now_s < self._overruled_until_s:
                self._node.statistics.counts["overruled commands"] += 1
                return
            self._node.statistics.counts["commands"] += 1
            self._node.undelivered(topic)
            if is_helm and not self._holds_zero and not any(value for _, value in _floats(message)):
                self._forget()  # a stick in its middle asks for whatever holds this vehicle best
                return
            self.mailbox.put(read(message), stamp_numbers(stamp) if stamp else None)
            self._on_command()

        self._node.make_subscription(message_type, topic, receive, command_stream())

    def _forget(self) -> None:
        self.mailbox.forget()
        self._on_command()  # so that the neutral command goes out now


def _non_finite_field(message: Any) -> str | None:
    for name, value in _floats(message):
        if not math.isfinite(value):
            return f"{name} is {value}, and has to be a finite number."
    return None


def _floats(message: Any) -> Iterable[tuple[str, float]]:
    """Yield every float of a message with its name, for instance angular.x."""
    return ((name, get(message)) for name, get in _float_getters(message.__class__))


@functools.cache
def _float_getters(message_type: type) -> tuple[tuple[str, Callable[[Any], float]], ...]:
    """Return a getter for each float of a message; finding them takes longer than everything else about a command."""

    def names(message: Any, prefix: str) -> Iterable[str]:
        for name in message.get_fields_and_field_types():
            value = getattr(message, name)
            if isinstance(value, float):
                yield f"{prefix}{name}"
            elif hasattr(value, "get_fields_and_field_types"):
                yield from names(value, f"{prefix}{name}.")

    return tuple((name, operator.attrgetter(name)) for name in names(message_type(), ""))
