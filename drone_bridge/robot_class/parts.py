# SPDX-License-Identifier: Apache-2.0
"""Parts: import paths of a Robot's parts in the registry, each imported on first use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from drone_bridge.kind import NodeKind, Port, Program, ProtocolKind, Role, Sent, Side
from drone_bridge.robot_class.robot import Robot, first_link, is_stream, port_parameters

if TYPE_CHECKING:
    from drone_bridge.robot_class.connection import RobotClassConnection
LAUNCH_FILE = "vehicle.launch.xml"


class Parts:
    """Connections, nodes and programs of one Robot."""

    def __init__(self, robot: type[Robot]) -> None:
        """`robot` is the description."""
        self._robot = robot

    def kind(self, *, has_robots_end: bool) -> ProtocolKind:
        """Return the KIND. A robot without the robot's end has only a bridge and an operator."""
        robot, at = self._robot, f"{self._robot.__module__}:{self._robot.__qualname__}.parts"
        ours = port_parameters(robot)
        agreed = {name: name.replace("_", "-") for name in ("host", "port", *ours)}
        ports = (
            Port("port", first_link(robot).port, Side.VEHICLE),
            *(Port(name, number, Side.OPERATOR) for name, number in ours.items()),
        )
        at_once = {"in-the-air": True} if "takeoff" in robot.requests else {}
        emulator = Program(robot.name, robot.summary, f"{at}.emulate", agreed=agreed, at_once=at_once)

        def node(role: str) -> NodeKind:
            return NodeKind(f"{at}.{role}", f"{at}.{role}_parameters", f"robot_class_{role}", (robot.name,))

        return ProtocolKind(
            name=robot.name,
            summary=robot.summary,
            ports=ports,
            operator_role=Role("client", f"{at}.client"),
            vehicle_role=Role("robot", f"{at}.robots_end"),
            is_stream=is_stream(robot),
            conversation=f"{at}.conversation" if has_robots_end else "",
            commands=f"{at}.commands" if has_robots_end else "",
            faults=f"{at}.faults" if has_robots_end else "",
            topics=f"{at}.table",
            bridge=node("bridge"),
            server=node("server") if has_robots_end else None,
            emulator=emulator if has_robots_end else None,
            operator=Program(
                robot.name, f"a client of {robot.summary}", f"{at}.operate", agreed=agreed, at_once=at_once
            ),
            launch_file=LAUNCH_FILE,
            launch_arguments={"robot": robot.name},
            model=robot.model,
            watchdog_s=robot.robot_stops_after_s,
        )

    # Connections, for tests and relays.

    def client(self) -> RobotClassConnection:
        """Return a client's connection."""
        from drone_bridge.robot_class.connection import RobotClassConnection

        return RobotClassConnection(self._robot, Side.OPERATOR)

    def robots_end(self) -> RobotClassConnection:
        """Return a robot's connection."""
        from drone_bridge.robot_class.connection import RobotClassConnection

        return RobotClassConnection(self._robot, Side.VEHICLE)

    def conversation(self) -> Sequence[Sent]:
        """Return a sample conversation of both ends of the description."""
        from drone_bridge.robot_class.connection import conversation

        return conversation(self._robot)

    def commands(self) -> Any:
        """Return a reader of a client's commands, which yields for each whether it is neutral."""
        from drone_bridge.robot_class.connection import is_neutral

        end = self.robots_end()

        def read(data: bytes) -> Iterator[bool]:
            end.receive_data(data)
            yield from is_neutral(end.events())

        return read

    def faults(self) -> Iterator[str]:
        """Yield what is wrong with the description, as sentences."""
        from drone_bridge.robot_class.self_check import faults

        return faults(self._robot)

    # Nodes, which need ROS.

    @cached_property
    def bridge(self) -> type[Any]:
        """Node class of the bridge."""
        from drone_bridge.robot_class.bridge import RobotClassBridge

        return type(f"{self._robot.__name__}Bridge", (RobotClassBridge,), {"robot": self._robot})

    @property
    def bridge_parameters(self) -> Sequence[Any]:
        """Parameter declarations of the bridge."""
        from drone_bridge.robot_class.bridge import parameters

        return parameters(self._robot)

    @cached_property
    def server(self) -> type[Any]:
        """Node class of the server."""
        from drone_bridge.robot_class.server import RobotClassServer

        return type(f"{self._robot.__name__}Server", (RobotClassServer,), {"robot": self._robot})

    @property
    def server_parameters(self) -> Sequence[Any]:
        """Parameter declarations of the server."""
        from drone_bridge.robot_class.server import parameters

        return parameters(self._robot)

    @cached_property
    def table(self) -> Any:
        """Table of the topics. Raises ImportError or AttributeError if a message type is not installed."""
        from drone_bridge.robot_class.topics import make_table

        return make_table(self._robot)

    # Programs.

    @property
    def emulate(self) -> Any:
        """Main function of the emulator."""
        from drone_bridge.robot_class.emulator import main

        return partial(main, self._robot)

    @property
    def operate(self) -> Any:
        """Main function of the operator."""
        from drone_bridge.robot_class.operator import main

        return partial(main, self._robot)
