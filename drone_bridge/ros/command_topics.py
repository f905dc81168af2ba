# SPDX-License-Identifier: Apache-2.0
"""CommandTopics: the topics that command a vehicle, whose valid messages go to an arbiter.

Streams (`cmd_vel`, `cmd_vel_stamped`, raw commands) are taken by the executor and the link's thread in turn, see
`CommandStreams`. The helm stays with the executor: it takes hold's lock, writes its file and publishes.
"""

import functools
import math
import operator
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, Generic, TypeVar

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Twist, TwistStamped, Vector3

from drone_bridge.motion.observed_motion import Triple
from drone_bridge.motion.tilted_drone import Shares
from drone_bridge.msg import CommandAxes
from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.command_ages import CommandAges
from drone_bridge.ros.command_axes import shares_from_axes
from drone_bridge.ros.command_streams import PERIOD_S, CommandStreams
from drone_bridge.ros.limits import LimitReports, read_limits
from drone_bridge.ros.protocol_node import ProtocolNode
from drone_bridge.ros.qos import stream
from drone_bridge.ros.stall_watch import StreamSettling
from drone_bridge.ros.time import stamp_numbers
from drone_bridge.ros.velocity_messages import OtherTypes, cmd_vel_type, velocity_frames
from drone_bridge.session.arbiter import Arbiter, Arrival, AskedVelocity

CommandT = TypeVar("CommandT")

#: Whatever a controller's rounding errors ask for, m/s or rad/s, is nothing that anybody wants.
ROUNDING = 1e-6
#: How fast a vehicle sinks that has to land and has no button for it, m/s.
LANDING_SPEED = 0.5
#: What a Twist can ask for, with its unit.
TWIST_AXES = {
    **{f"linear.{axis}": "m/s" for axis in "xyz"},
    **{f"angular.{axis}": "rad/s" for axis in "xyz"},
}

#: Makes a command of a message, and says whether that was within the vehicle's limits.
Read = Callable[[Any], tuple[CommandT, bool]]


class CommandTopics(Generic[CommandT]):
    """Takes the commands for a vehicle, refuses stale and non-finite ones, and hands the others to `arbiter`."""

    def __init__(
        self,
        node: ProtocolNode,
        now: Callable[[], Time] | None = None,
        on_command: Callable[[], None] = lambda: None,
        *,
        period_s: float | None = PERIOD_S,
        holds_zero: bool = False,
        has_landing_button: bool = False,
    ) -> None:
        """Prepare to take commands.

        Args:
            node: whose topics they come from.
            now: the clock of the stamps, if that is not a machine's clock.
            on_command: called when there is a new command between two decisions, or none any more.
            period_s: how often the link's thread takes while commands flow, s; None: the executor takes each one.
            holds_zero: whether a zero from a helm is flown, as it holds the vehicle better than the neutral command.
            has_landing_button: whether the vehicle is landed by a button, and not by a velocity.
        """
        self._node = node
        self._now = now
        self._on_command = on_command
        self._holds_zero, self._has_landing_button = holds_zero, has_landing_button
        #: What decides what is sent, for the session.
        self.arbiter: Arbiter[CommandT] = Arbiter(
            node.hold.state, read_limits(node), lambda: float(node.parameters["command_timeout"]), node.report
        )
        LimitReports(node, self.arbiter)
        self._streams = CommandStreams(node, on_command, period_s)
        self._report = self._streams.report
        self._settling = StreamSettling()
        self.arbiter.take, node.intake = self._streams.take, self._streams
        self._warned_axes: set[str] = set()
        node.hold.when_set(self._forget)

    def take_velocities(self, read: Read[CommandT], follows: Collection[str] = tuple(TWIST_AXES)) -> None:
        """Subscribe to cmd_vel, cmd_vel_stamped and ~/helm; `read` converts a Twist to a command.

        The second takes precedence over the first; the third is for a person at a stick, who locks out all others (see
        `Hold`). `follows` names the TWIST_AXES that the vehicle can move along or about. A command for others is logged
        once.
        """
        if "linear.z" in follows and not self._has_landing_button:
            self.arbiter.sink = partial(_at, read, Vector3(), (0.0, 0.0, -LANDING_SPEED))
        parameters = self._node.parameters
        turn = velocity_frames(parameters, lambda: self._node.observed.yaw).in_body
        cmd_vel = cmd_vel_type(parameters)
        # The helm is first in the executor.
        self._take("~/helm", TwistStamped, read, turn, follows, is_helm=True)
        self._take("cmd_vel", cmd_vel, read, turn, follows)
        self._take("cmd_vel_stamped", TwistStamped, read, turn, follows, overrules=True)
        self._node.each_second(OtherTypes(self._node, "cmd_vel", cmd_vel).warn_of_publishers)

    def take_axes(self, read: Callable[[Shares], tuple[CommandT, bool]]) -> None:
        """Subscribe to cmd_axes; `read` converts shares, and returns whether they were within the limits."""
        self._take("cmd_axes", CommandAxes, lambda message: read(shares_from_axes(message)))

    def take(self, topic: str, message_type: type, read: Callable[[Any], CommandT]) -> None:
        """Subscribe to raw commands, which have no limits; one that is older than `command_timeout` is refused."""
        self._take(topic, message_type, lambda message: (read(message), True))

    def _take(
        self,
        topic: str,
        message_type: type,
        read: Read[CommandT],
        turn: Callable[[Any], Any] = lambda message: message,
        follows: Collection[str] | None = None,
        *,
        overrules: bool = False,
        is_helm: bool = False,
    ) -> None:
        """Subscribe to a topic; a message whose stamp is older than `command_timeout` is refused, see CommandAges.

        `turn` gets a message that is fresh, and returns it in the vehicle's axes for `read`, or raises ValueError with
        a sentence. `follows` is None for what is no velocity. After a command on a topic that `overrules`, those on
        other topics are ignored for `command_timeout`. `Hold` decides whose are followed.
        """
        ages = CommandAges(self._node, topic, self._now)

        def receive(message: Any) -> bool:
            stamp = ages.stamp_of(message)
            refusal = _non_finite_field(message) or self._settling.refusal() or ages.refusal(stamp)
            if not refusal:
                try:
                    message = turn(message)
                except ValueError as error:
                    refusal = str(error)
            if refusal:
                sentence = f"A command on {topic} was refused: {refusal}"
                self._report(partial(self._node.report.count_and_warn, "refused_commands", sentence))
                return False
            now_s = elapsed_s()
            if not self._is_admitted(topic, now_s, overrules=overrules, is_helm=is_helm):
                return False
            self._report(partial(self._node.undelivered, topic))
            if is_helm and not self._holds_zero and not any(value for _, value in _floats(message)):
                self._forget()  # a stick in its middle asks for whatever holds this vehicle best
                return False
            velocity = None
            if follows is not None:
                self._note_unsupported_axes(message, follows)
                linear, angular = message.linear, message.angular
                velocity = AskedVelocity((linear.x, linear.y, linear.z), partial(_at, read, angular))
            command, was_within = read(message)
            if not was_within:
                self._node.report.counts["clamped_commands"] += 1
            stamped = stamp_numbers(stamp) if stamp else None
            self.arbiter.put(Arrival(command, now_s, velocity, stamped, is_helm=is_helm))
            return True

        def receive_from_helm(message: Any) -> None:
            if receive(message):
                self._on_command()

        if is_helm:
            self._node.make_subscription(message_type, topic, receive_from_helm, stream())
        else:
            self._streams.add(message_type, topic, receive)

    def _is_admitted(self, topic: str, now_s: float, *, overrules: bool, is_helm: bool) -> bool:
        """Return whether a valid command is followed, by hold and by the precedence of its topic; count it."""
        counts, hold = self._node.report.counts, self._node.hold
        if is_helm:
            if not hold.admits(topic, is_helm=True):
                return False
        elif not hold.state.is_free:
            self._report(partial(hold.admits, topic))
            return False
        elif not self.arbiter.admits(now_s, overrules=overrules):
            counts["overruled_commands"] += 1
            return False
        counts["commands"] += 1
        return True

    def _note_unsupported_axes(self, twist: Twist, follows: Collection[str]) -> None:
        unfollowed = {axis: value for axis, value in _floats(twist) if abs(value) > ROUNDING and axis not in follows}
        if not unfollowed:
            return
        self._node.report.counts["commands_for_axes_that_it_lacks"] += 1
        if unfollowed.keys() <= self._warned_axes:
            return
        self._warned_axes |= unfollowed.keys()
        wanted = ", ".join(f"{axis} = {value:g} {TWIST_AXES[axis]}" for axis, value in unfollowed.items())
        sentence = (
            f"cmd_vel asks for {wanted}, which this vehicle can't do; it follows {', '.join(follows)}. The rest of the "
            f"command is followed. This is logged once."
        )
        self._report(partial(self._node.report.warn, sentence))

    def _forget(self) -> None:
        self._streams.drop_waiting()
        self.arbiter.forget()
        self._on_command()  # so that the neutral command goes out now


def _at(read: Read[CommandT], angular: Vector3, linear: Triple) -> CommandT:
    """Return the command for another velocity, m/s, with the same turn rates."""
    x, y, z = linear
    return read(Twist(linear=Vector3(x=x, y=y, z=z), angular=angular))[0]


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
