# SPDX-License-Identifier: Apache-2.0
"""OtherNodes: other nodes on a bridge's command topics: programs that command, and vehicles that follow, too."""

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

from rclpy.qos import QoSProfile, ReliabilityPolicy

from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.commands.cmd_vel_type import bridges, names_of
from drone_bridge.ros.commands.command_topic import CommandTopic
from drone_bridge.ros.distributions import sequence_number
from drone_bridge.ros.hold.file_writer import FileWriter
from drone_bridge.ros.hold.hold_file import HoldFile
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.streams import MAX_PASSED_OVER, UNWATCHED, PolledCallbackGroup, arrived, ignore
from drone_bridge.session.interleaving import Interleaving
from drone_bridge.session.obstacles import Obstacle

#: Time in which a bridge that starts finds others that follow the same commands, s.
FINDS_OTHERS_S = 5.0
#: Content of the file of vehicles that a person has resumed beside each other.
_RESUMED = "resumed"


class OtherNodes:
    """Other nodes on the command topics of a bridge, by the graph."""

    def __init__(self, node: ProtocolNode, topics: Mapping[str, CommandTopic[Any]]) -> None:
        """`topics` are those of programs and controllers, by name. They may be replaced."""
        self._node, self._topics = node, topics
        self._began_s = elapsed_s()
        # Whether another vehicle was seen, and whether this one is held since.
        self._is_shared = self._waits = False
        self._resumed: FileWriter[HoldFile] = FileWriter(lambda file: file.keep(_RESUMED), lambda problem: None)
        # Listeners to topics with several publishers, each with the topic as it was then, by full name.
        self._listeners: dict[str, tuple[CommandTopic[Any], Any, Interleaving]] = {}
        self._unheard: CommandTopic[Any] | None = None  # topic that needs a listener
        self._executor_wake = node.make_guard_condition(self._listen)

    def look_for_vehicles(self) -> None:
        """Report other vehicles that follow the same commands. If they were there before, wait for a person.

        The vehicle goes on waiting when they end: otherwise it would drive off by itself.
        """
        node, hold = self._node, self._node.hold
        own, facts = node.get_fully_qualified_name(), None
        for topic in tuple(self._topics.values()):
            if others := [each for each in bridges(node, topic.full_name) if each != own]:
                facts = {"vehicles": " and ".join([own, *others]), "topic": topic.full_name}
                break
        node.report.update_obstacle(Obstacle.SHARED, facts)
        if facts is None:
            return
        # One file for all of them: whichever is respawned, a person has resumed one beside the others.
        pair = HoldFile(node.context.get_domain_id(), "+".join(sorted([own, *others])))
        is_new = not self._is_shared and elapsed_s() - self._began_s < FINDS_OTHERS_S
        if is_new and not _is_resumed(pair):
            hold.hold(Obstacle.SHARED.sentence(**facts).rstrip("."))
        elif self._waits and not hold.is_held:
            self._resumed.keep(pair)
        self._is_shared, self._waits = True, hold.is_held

    def look_for_programs(self, topic: CommandTopic[Any], publishers: Iterable[Any]) -> dict[str, object] | None:
        """Return the facts of COMMANDERS if several programs send on a topic. A message does not name its publisher."""
        publishers, found = tuple(publishers), self._listeners.get(topic.full_name)
        if len(publishers) < 2:
            return None
        if found is None or found[0] is not topic:  # its type has changed
            self._unheard = topic
            self._executor_wake.trigger()
            return None
        _, listener, numbers = found
        now_s = elapsed_s()
        for _, info in arrived(listener, MAX_PASSED_OVER):
            if (number := sequence_number(info)) is not None:
                numbers.received(number, now_s)
        names = names_of(publishers)
        # A node may have several, as web_bridge has for clients of rosbridge.
        count = f" ({len(publishers)} publishers)" if len(publishers) > len(names) else ""
        return {"nodes": " and ".join(names) + count, "topic": topic.full_name} if numbers.lasts(now_s) else None

    def _listen(self) -> None:
        """Subscribe beside the stream of depth 1, in which the messages of one program may replace all of another's."""
        if (topic := self._unheard) is None:
            return
        qos = QoSProfile(depth=MAX_PASSED_OVER, reliability=ReliabilityPolicy.BEST_EFFORT)
        group, kind = PolledCallbackGroup(), topic.message_type
        listener = self._node.create_subscription(
            kind, topic.full_name, ignore, qos, callback_group=group, event_callbacks=UNWATCHED
        )
        self._node.keep_subscription(listener)
        self._listeners[topic.full_name], self._unheard = (topic, listener, Interleaving()), None


def _is_resumed(pair: HoldFile) -> bool:
    with contextlib.suppress(OSError):
        return pair.read() == _RESUMED
    return False
