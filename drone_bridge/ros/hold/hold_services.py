# SPDX-License-Identifier: Apache-2.0
"""HoldServices: discovers and calls the services that hold and release vehicles, and follows their reports."""

import functools
from collections.abc import Callable
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from std_srvs.srv import SetBool

from drone_bridge.msg import HoldStatus
from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.commands.cmd_vel_type import names_of
from drone_bridge.ros.node.link_report import LINK_STATUS, PEER_SILENT
from drone_bridge.ros.qos import latched
from drone_bridge.ros.type_names import name_of_type
from drone_bridge.session.obstacles import Obstacle

SERVICE_TYPE = "std_srvs/srv/SetBool"
_ENDING = "/hold"
#: Time within which subscribers are discovered, s.
DISCOVERY_S = 3.0


def node_of(service: str) -> str:
    """Return the full name of the node that offers a hold service."""
    return service.removesuffix(_ENDING)


def is_of(service: str, vehicle: str) -> bool:
    """Return whether a hold service belongs to a vehicle, named by its namespace or its node's full name."""
    name, node = f"/{vehicle.strip('/')}", node_of(service)
    return name in (node, node.rpartition("/")[0] or "/")


def refusal_of(status: HoldStatus) -> str:
    """Return a sentence about why a vehicle does not follow programs, and what to do; empty if it does."""
    if status.held:
        return Obstacle.HOLD.sentence(reason=status.reason)
    return Obstacle.HELM.sentence() if status.helm else ""


def commands_of(node: Any, status: HoldStatus) -> str:
    """Return whose commands a vehicle follows, as a clause; empty if none."""
    names = names_of(node.get_publishers_info_by_topic(status.commander)) if status.commander else []
    return f"commands on {status.commander} by {' or '.join(names) or 'a node'}" if status.commander else ""


class HoldServices:
    """Clients of the wanted services. The caller polls `find` and `call`."""

    def __init__(self, node: Any, is_wanted: Callable[[str], bool]) -> None:
        """`is_wanted` returns whether to call a service, by its full name."""
        self._node, self._is_wanted = node, is_wanted
        self._clients: dict[str, Any] = {}
        self._reports: dict[str, HoldStatus | None] = {}

    @property
    def found(self) -> tuple[str, ...]:
        """Full names of the discovered services."""
        return tuple(self._clients)

    def all(self) -> list[str]:
        """Return the full names of all hold services in this ROS domain."""
        names = self._node.get_service_names_and_types()
        return sorted(name for name, types in names if name.endswith(_ENDING) and SERVICE_TYPE in types)

    def find(self) -> bool:
        """Create clients for newly discovered services. Return True if there are any and all are ready."""
        for name in self.all():
            if name not in self._clients and self._is_wanted(name):
                self._clients[name] = self._node.create_client(SetBool, name)
        return bool(self._clients) and all(client.service_is_ready() for client in self._clients.values())

    def reports(self) -> list[HoldStatus | None]:
        """Return the newest report of each discovered node, None before the first one, and follow it from now on."""
        for name in self._clients.keys() - self._reports.keys():
            self._reports[name] = None
            take = functools.partial(self._reports.__setitem__, name)
            self._node.create_subscription(HoldStatus, f"{node_of(name)}/hold_status", take, latched())
        return [*self._reports.values()]

    def call(self, is_held: bool, calls: dict[str, Any]) -> bool:
        """Call, without waiting, each ready service that has no call yet. Return whether there was any.

        `calls` collects the futures by service name.
        """
        waiting = [name for name in self._clients if name not in calls]
        ready = [name for name in waiting if self._clients[name].service_is_ready()]
        for name in ready:
            calls[name] = self._clients[name].call_async(SetBool.Request(data=is_held))
        return bool(ready)


class CommandRefusals:
    """Reasons why the subscribers of a topic do not follow it: another type, no open link, a hold, or a helm."""

    def __init__(
        self,
        node: Any,
        message_type: type,
        topic: str,
        *,
        discovery_s: float = DISCOVERY_S,
        similar: Callable[[str], str] = lambda topic: "",
    ) -> None:
        """Start to observe.

        Args:
            node: the one that publishes.
            message_type: of the topic.
            topic: its name.
            discovery_s: time for which a topic without subscribers is not reported, s.
            similar: returns a question with similar names, or "".
        """
        self._similar = similar
        self._node, self._topic, self._type = node, node.resolve_topic_name(topic), name_of_type(message_type)
        self._discovered_at = elapsed_s() + discovery_s
        self._subscriptions: dict[str, Any] = {}
        self._statuses: dict[str, HoldStatus] = {}
        self._links: dict[str, str] = {}  # message of each link without a peer, else ""
        self._said: dict[str, str] = {}
        node.create_subscription(DiagnosticArray, "/diagnostics", self._take_diagnostics, 10)

    def refusal(self) -> str:
        """Return why a subscriber whose report is known does not follow commands, a sentence, or ""."""
        statuses = (self._statuses.get(name) for name, _ in self._subscribers())
        return next(filter(None, (refusal_of(each) for each in statuses if each)), "")

    def changes(self) -> list[str]:
        """Return a sentence for each subscriber that has begun to refuse commands, or to follow them again.

        After the time of discovery, the first one is about a topic without subscribers.

        Call this periodically, about once per second: it reads the graph. The reports of newly discovered nodes arrive
        while the caller spins.
        """
        sentences: list[str] = []
        if not self._node.count_subscribers(self._topic):
            is_early = self._said or elapsed_s() < self._discovered_at
            absence = "" if is_early else f"No node subscribes to {self._topic}{self._similar(self._topic) or '.'}"
            return [self._say("", absence)] if absence else sentences
        for name, its_type in self._subscribers():
            if its_type != self._type:
                refusal = f"It subscribes to {self._topic} with type {its_type}, not {self._type}: no messages arrive."
            elif (status := self._status(name)) is None or name not in self._links:
                continue
            else:
                refusal = self._links[name] or refusal_of(status) or self._followed(status)
            if refusal != self._said.get(name):
                sentences.append(self._say(name, f"{name}: {refusal}", refusal))
        return sentences

    def _followed(self, status: HoldStatus) -> str:
        commands, own = commands_of(self._node, status), self._node.get_fully_qualified_name()
        is_own = not commands or commands.endswith(f" by {own}")
        return "It follows commands." if is_own else f"It follows {commands}."

    def _subscribers(self) -> list[tuple[str, str]]:
        infos = self._node.get_subscriptions_info_by_topic(self._topic)
        return [(f"{each.node_namespace.rstrip('/')}/{each.node_name}", each.topic_type) for each in infos]

    def _say(self, name: str, sentence: str, refusal: str = "") -> str:
        self._said[name] = refusal
        return sentence

    def _take_diagnostics(self, array: DiagnosticArray) -> None:
        for status in array.status:
            silence = next((each.value for each in status.values if each.key == PEER_SILENT), None)
            if silence is not None:
                name = f"/{status.name.removesuffix(LINK_STATUS)}"
                self._links[name] = "" if silence else f"It has no link: {status.message}."

    def _status(self, name: str) -> HoldStatus | None:
        """Return the newest report of a node about its hold, by its full name; None before the first."""
        if name not in self._subscriptions:

            def take(status: HoldStatus) -> None:
                self._statuses[name] = status

            self._subscriptions[name] = self._node.create_subscription(
                HoldStatus, f"{name}/hold_status", take, latched()
            )
        return self._statuses.get(name)
