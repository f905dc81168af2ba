# SPDX-License-Identifier: Apache-2.0
"""Turns clients' ESETs of v and w into cmd_vel, until the client disconnects or is silent. For the link's thread."""

import math
from collections.abc import Callable

from geometry_msgs.msg import Twist

from drone_bridge.motion.quaternions import IDENTITY
from drone_bridge.motion.wxyz import Vector
from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.last_word import LastWord
from drone_bridge.ros.link_node import LinkNode
from drone_bridge.ros.topics import wait_for_delivery
from drone_bridge.ros.velocity_messages import cmd_vel_type
from drone_bridge.simulator.codec import Attribute
from drone_bridge.simulator.device.world import INVALID, RefusedError
from drone_bridge.simulator.server.scene import UNKNOWN_STATE
from drone_bridge.simulator.topics import Axes, EntityState, twist_from_velocity, velocity_from_wire

STANDING: Vector = (0.0, 0.0, 0.0)
HELD = "The vehicle is held."


class VelocityCommands:
    """Publishes each change of what clients set, and zero when one that steers is silent or has disconnected.

    v and w are each what was set last, by whichever client and whether by a topic or by a service, and zero if nobody
    who steers has set it. They end together: with the first client of them that ends, with a pause, and with hold.
    """

    def __init__(
        self, node: LinkNode, axes: Axes, state: Callable[[], EntityState | None], now_s: Callable[[], float]
    ) -> None:
        """`state` returns the vehicle's, None while it is unknown; `now_s` is the time, monotonic."""
        self._node = node
        self._axes = axes
        self._state = state
        self._now_s = now_s
        self._publisher = node.make_publisher(cmd_vel_type(node.parameters), "cmd_vel", 1)
        self._last_word = LastWord(node, (self._publisher,), lambda: (self._publisher, Twist()))
        self._velocity: dict[int, Vector] = {}  # v and w as they were set
        self._heard_s: dict[object, float] = {}  # when each client that steers did so last
        self._is_due = False
        self._is_hold_new = False  # whether hold has begun or ended; set in the executor
        self._decided_s = 0.0  # when what was set was found to be no older than this process's last stall
        #: The client whose request is being handled.
        self.client: object = None
        #: Whether what clients say may have waited while this process stood still.
        self.is_settling: Callable[[], bool] = lambda: False
        #: Whether the world is paused, so that nothing is published.
        self.is_paused = False
        node.hold.when_set(self._note_hold)

    @property
    def due_s(self) -> float:
        return min(self._heard_s.values(), default=math.inf) + float(self._node.parameters["command_timeout"])

    def set(self, attribute: int, value: Vector) -> None:
        """Take v or w. Raises RefusedError."""
        if not all(map(math.isfinite, value)):
            self._node.count_and_warn(
                "refused commands", f"A client requested a velocity of {value}, which was refused."
            )
            raise RefusedError(INVALID, f"The numbers must be finite, not {value}.")
        if any(value) and not self._node.hold.admits("the operator's topics"):
            raise RefusedError(0, HELD)
        self._decided_s = elapsed_s()
        if any(value) and (self.is_settling() or not self._node.takes_commands()):
            raise RefusedError(INVALID, "The server has just stood still, and the request may be old: send it again.")
        if attribute == Attribute.VELOCITY and any(value) and self._state() is None:
            self._node.count_and_warn(
                "unsteered commands", "The vehicle can't be steered, as its orientation is unknown."
            )
            raise RefusedError(0, UNKNOWN_STATE)
        self.note(self.client, attribute, value)
        self._is_due = True

    def hear(self, client: object) -> None:
        """Note that a client steers by a service call, which may be carried out although nobody answers it."""
        self._forget_if_held()
        self._heard_s[client] = self._now_s()

    def note(self, client: object, attribute: int, value: Vector) -> None:
        """Note v or w as a client has set it."""
        self.hear(client)
        self._velocity[attribute] = value

    def flush(self) -> None:
        """Publish a change."""
        self._forget_if_held()
        if not self._is_due:
            return
        self._is_due = False
        if self.is_paused:
            return
        get = self._node.parameters.__getitem__
        state = self._state()
        v, w = (self._velocity.get(each, STANDING) for each in (Attribute.VELOCITY, Attribute.ANGULAR_VELOCITY))
        if state is None and any(v):
            self.stop()
            return
        orientation = state.orientation if state else IDENTITY  # it only turns, so the orientation does not matter
        velocity = velocity_from_wire(v, w, orientation, self._axes)
        allowed = velocity.limited(get("max_linear_speed"), get("max_angular_speed"))
        self._node.statistics.counts["clamped commands"] += allowed != velocity
        self._node.statistics.counts["commands"] += 1
        self._last_word.publish(self._publisher, twist_from_velocity(allowed), self._decided_s)

    def tick(self) -> None:
        """Stop the vehicle if a client that steers is silent."""
        self._forget_if_held()
        if self._now_s() >= self.due_s:
            is_own = self.is_settling()
            cause = "This process stood still" if is_own else "A client that steered has been silent for a while"
            self._node.inform(f"{cause}: the vehicle is stopped.")
            self.stop()

    def leave(self, client: object) -> None:
        """Stop the vehicle if this client steers it."""
        if client in self._heard_s:
            self.stop()

    def end(self) -> None:
        """Stop a vehicle that is steered, and wait for the message to be delivered before the node is destroyed."""
        if self._heard_s:
            self.stop()
            wait_for_delivery(self._publisher)

    def stop(self) -> None:
        """Publish zero if a client steers."""
        if self._heard_s:
            self._forget()
            self._last_word.say()

    def _note_hold(self) -> None:
        self._is_hold_new = True  # zero is published by LastWord

    def _forget_if_held(self) -> None:
        if self._is_hold_new:
            self._is_hold_new = False
            self._forget()

    def _forget(self) -> None:
        self._velocity.clear()
        self._heard_s.clear()
        self._is_due = False
