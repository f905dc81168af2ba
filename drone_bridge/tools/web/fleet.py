# SPDX-License-Identifier: Apache-2.0
"""Fleet: vehicles of the graph that follow velocities, and the publishers that steer and stop them."""

import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

from builtin_interfaces.msg import Time
from geometry_msgs.msg import TwistStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_srvs.srv import SetBool

from drone_bridge.msg import HoldStatus, HoldWish, PilotCommand
from drone_bridge.ros.commands.cmd_vel_type import OBSERVERS, UNKNOWN_NODE
from drone_bridge.ros.hold.hold import MAX_PILOT
from drone_bridge.ros.publishers import NO_EVENTS, try_publish
from drone_bridge.ros.qos import latched
from drone_bridge.ros.streams import UNWATCHED
from drone_bridge.ros.type_names import name_of_type
from drone_bridge.session.hold_state import HelmPilot
from drone_bridge.tools.web.goals import goal_of
from drone_bridge.tools.web.helm import Motion
from drone_bridge.tools.web.vehicles import (
    AXES,
    COMMAND_TOPIC,
    COMMAND_TYPE,
    COMMANDS,
    HELM_TOPIC,
    HOLD_SERVICE,
    HOLD_TYPE,
    PILOT_TOPIC,
    STATUS_TOPIC,
    STATUS_TYPE,
    WISH_TOPIC,
    SteeredVehicle,
    by_service,
)
from drone_bridge.wire.printable import printable

#: Nodes of `drone-bridge topic` and other commands of a shell.
_SHELL = re.compile(r"^drone_bridge_([a-z]+)_\d+$")
MAX_VEHICLES = 64
MAX_CALLS = 50
"""Maximum number of pending calls of a service. STOP calls it ten times per second."""


class Fleet:
    """Finds vehicles, holds them, and publishes their commands and wishes. Publishing is thread-safe."""

    def __init__(
        self,
        node: Node,
        on_status: Callable[[str, HoldStatus], None],
        on_asked: Callable[[str, HelmPilot], None],
    ) -> None:
        """Prepare.

        Args:
            node: owner of the endpoints.
            on_status: callback on the executor's thread with the full name of a node and its report.
            on_asked: callback there for requests for the helm, also our own: topic, and who asks.
        """
        self._node = node
        self._on_status, self._on_asked = on_status, on_asked
        self._publishers: dict[str, Any] = {}
        self._clients: dict[str, Any] = {}  # by service, created in advance because STOP does not wait for discovery
        self._asked: dict[str, deque[Any]] = {}
        self._subscriptions_to_status: dict[str, Any] = {}
        self._subscriptions_to_pilots: dict[str, Any] = {}
        # By node. Entries of a removed node stay while its hold is wanted: DDS delivers the wish to the node when it
        # comes back.
        self._wish_publishers: dict[str, Any] = {}
        self._wished: dict[str, str] = {}  # id of the last published wish, by node
        self.vehicles: list[SteeredVehicle] = []

    def update(self, topics: Mapping[str, Sequence[str]], services: Mapping[str, Sequence[str]]) -> bool:
        """Update the vehicles from all topics and services of the graph; return whether they have changed."""
        found: list[SteeredVehicle] = []
        for topic, type_names in topics.items():
            if topic.rpartition("/")[2] != COMMAND_TOPIC or COMMAND_TYPE not in type_names:
                continue
            vehicles = self._vehicles_at(topic, topics, services)
            if len(found) + len(vehicles) > MAX_VEHICLES:
                sentence = f"The limit of {MAX_VEHICLES} vehicles is reached: {topic} can't be steered or stopped here."
                self._node.get_logger().warning(sentence, once=True)
                break
            found += vehicles
        if found == self.vehicles:
            return False
        self._connect(found)
        return True

    def _connect(self, vehicles: list[SteeredVehicle]) -> None:
        """Create the endpoints of these vehicles, and destroy others."""
        node, qos = self._node, QoSProfile(depth=1)
        targets = {target for vehicle in vehicles for target in vehicle.targets}
        _match(
            self._publishers,
            targets,
            lambda it: node.create_publisher(_type_of(it), it, qos, event_callbacks=NO_EVENTS),
            node.destroy_publisher,
        )
        holds = {service for vehicle in vehicles for service in vehicle.holds}
        for service in self._asked.keys() - holds:
            del self._asked[service]
        _match(self._clients, holds, lambda it: node.create_client(SetBool, it), node.destroy_client)
        reporters = {name for vehicle in vehicles for name in vehicle.reporters}
        _match(
            self._wish_publishers,
            reporters | {name for name, id_ in self._wished.copy().items() if id_},
            lambda it: node.create_publisher(HoldWish, f"{it}/{WISH_TOPIC}", latched(), event_callbacks=NO_EVENTS),
            node.destroy_publisher,
        )
        _match(self._subscriptions_to_status, reporters, self._follow_status, node.destroy_subscription)
        pilots = {target for target in targets if _type_of(target) is PilotCommand}
        _match(self._subscriptions_to_pilots, pilots, self._follow_pilots, node.destroy_subscription)
        self.vehicles = vehicles

    def _follow_status(self, name: str) -> Any:
        return self._node.create_subscription(
            HoldStatus,
            f"{name}/{STATUS_TOPIC}",
            lambda status: self._on_status(name, status),
            latched(),
            event_callbacks=UNWATCHED,
        )

    def _follow_pilots(self, target: str) -> Any:
        def take(command: PilotCommand) -> None:
            if command.asks and (asked := next((each for each in self.vehicles if target in each.targets), None)):
                by = HelmPilot(printable(command.id, MAX_PILOT), printable(command.name, MAX_PILOT))
                self._on_asked(asked.topic, by)

        return self._node.create_subscription(
            PilotCommand, target, take, QoSProfile(depth=10), event_callbacks=UNWATCHED
        )

    def wish(self, name: str, id_: str, reason: str) -> None:
        """Publish the wish to hold the vehicle of a node, latched. An empty id ends it."""
        self._wished[name] = id_
        if publisher := self._wish_publishers.get(name):
            try_publish(publisher, HoldWish(id=id_, reason=reason))

    def hold(self, topic: str, is_held: bool, answer: Callable[[str], None]) -> None:
        """Hold or release a vehicle, on the executor's thread.

        `answer` is called once on that thread: with the first problem, or with "" after all nodes have agreed.
        """
        services = next((each.holds for each in self.vehicles if each.topic == topic), ())
        left, problems = set(services), list[str]()

        def fail(problem: str) -> None:
            problems.append(problem)
            if len(problems) == 1:
                answer(problem)

        def take(service: str, future: Any) -> None:
            error = future.exception()
            if error or not future.result().success:
                fail(f"{service}: {error or future.result().message}")
                return
            left.discard(service)
            if not left:
                answer("")

        if not services:
            fail("the vehicle has disappeared")
        for service in services:
            client = self._clients[service]
            if not client.service_is_ready():
                fail(f"the service {service} does not exist")
                continue
            calls = self._asked.setdefault(service, deque())
            calls.append(client.call_async(SetBool.Request(data=is_held)))
            calls[-1].add_done_callback(lambda future, service=service: take(service, future))
            if len(calls) > MAX_CALLS:
                client.remove_pending_request(calls.popleft())

    def _vehicles_at(
        self, topic: str, topics: Mapping[str, Sequence[str]], services: Mapping[str, Sequence[str]]
    ) -> list[SteeredVehicle]:
        """Return the vehicles of a topic, by its subscribers that are not only observers.

        These are one vehicle, unless several are bridges with helms: each further one is a vehicle named by its node.
        """
        names = {
            f"{taker.node_namespace.rstrip('/')}/{taker.node_name}": taker.node_name
            for taker in self._node.get_subscriptions_info_by_topic(topic)
            if taker.topic_type == COMMAND_TYPE and taker.node_name not in OBSERVERS
        }
        helms = {
            full: next(
                (each for each in _helms_of(full) if name_of_type(_type_of(each)) in topics.get(each, ())), topic
            )
            for full in sorted(names)
        }
        present = next((each.targets for each in self.vehicles if each.topic == topic), ())
        bridges = sorted((full for full in helms if helms[full] != topic), key=lambda full: helms[full] not in present)
        nodes: dict[str, dict[str, str]] = {}
        for full in helms:
            nodes.setdefault(f"{full}/{COMMAND_TOPIC}" if full in bridges[1:] else topic, {})[full] = names[full]
        namespace, is_alone = topic.rpartition("/")[0], len(bridges) < 2
        found = []
        for key, full_names in nodes.items():
            holds = [each for full in full_names if HOLD_TYPE in services.get(each := f"{full}/{HOLD_SERVICE}", ())]
            reporters = [full for full in full_names if STATUS_TYPE in topics.get(f"{full}/{STATUS_TOPIC}", ())]
            reporters = [full for full in reporters if f"{full}/{HOLD_SERVICE}" in holds]
            reporters = reporters if len(reporters) == len(holds) else []
            vehicle = SteeredVehicle(
                key,
                min(
                    (name for name in full_names.values() if name.endswith("_bridge")), default=min(full_names.values())
                ),
                # What is published on the topic itself commands all of them, and so does a goal.
                targets=tuple(dict.fromkeys(helms[full] for full in full_names if is_alone or full in bridges)),
                holds=tuple(holds),
                reporters=tuple(reporters),
                commanders=self._commanders(topic, topics),
                goal=goal_of(namespace, services, self._node) if is_alone else "",
                emergencies=by_service(full_names, services, lambda kind: kind.emergencies),
                buttons=by_service(full_names, services, lambda kind: kind.buttons),
            )
            found.append(vehicle)
        return found

    def _commanders(self, topic: str, topics: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
        """Return the nodes that publish on topics that command the same vehicle, by topic."""
        beside, own, found = topic.rpartition("/")[0] + "/" + COMMANDS, self._node.get_name(), {}
        for each in topics:
            if each.startswith(beside) and "/" not in each.removeprefix(beside):
                names = {publisher.node_name for publisher in self._node.get_publishers_info_by_topic(each)}
                if own in names:
                    names ^= {own} if each in self._publishers else {own, "rosbridge"}
                names = {"a new node" if name == UNKNOWN_NODE else name for name in names}
                if names:
                    found[each] = tuple(sorted(_SHELL.sub(r"drone-bridge \1", name) for name in names))
        return found

    def command(
        self, topic: str, motion: Motion, stamp: Time, max_speed: float, max_turn_rate: float, *, pilot: HelmPilot
    ) -> None:
        """Publish a command that was given at `stamp`, in m/s and rad/s; `motion` is from -1 to 1 along AXES."""
        vehicle = next((each for each in self.vehicles if each.topic == topic), None)
        if vehicle is None:
            return
        limits = dict.fromkeys(AXES, max_speed) | {"yaw": max_turn_rate}
        speeds = {axis: vehicle.max_speed(axis, limits[axis]) if axis in vehicle.axes else 0.0 for axis in AXES}
        x, y, z, yaw = (value * speeds[axis] for axis, value in zip(AXES, motion, strict=True))
        message = TwistStamped()
        message.header.stamp = stamp
        linear = message.twist.linear
        linear.x, linear.y, linear.z = x, y, z
        message.twist.angular.z = yaw
        named = PilotCommand(header=message.header, id=pilot.id, name=pilot.name, twist=message.twist)
        for target in vehicle.targets:
            if publisher := self._publishers.get(target):
                try_publish(publisher, named if _type_of(target) is PilotCommand else message)

    def ask(self, topic: str, pilot: HelmPilot) -> None:
        """Ask the present pilot of a vehicle, at another server, for the helm."""
        for target in next((each.targets for each in self.vehicles if each.topic == topic), ()):
            if _type_of(target) is PilotCommand and (publisher := self._publishers.get(target)):
                try_publish(publisher, PilotCommand(id=pilot.id, name=pilot.name, asks=True))


def _helms_of(node: str) -> tuple[str, str]:
    return f"{node}/{PILOT_TOPIC}", f"{node}/{HELM_TOPIC}"


def _type_of(target: str) -> Any:
    return PilotCommand if target.endswith(f"/{PILOT_TOPIC}") else TwistStamped


def _match(
    endpoints: dict[str, Any], names: Set[str], create: Callable[[str], Any], destroy: Callable[[Any], object]
) -> None:
    """Create missing endpoints of these names, and destroy those of other names."""
    for name in names - endpoints.keys():
        endpoints[name] = create(name)
    for name in endpoints.keys() - names:
        destroy(endpoints.pop(name))
