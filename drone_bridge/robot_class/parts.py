# SPDX-License-Identifier: Apache-2.0
"""Parts: import paths of a Robot's parts in the registry, each imported on first use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from drone_bridge.kind import CUT_MOTORS, Emergency, NodeKind, Port, Program, ProtocolKind, Role, Side, load
from drone_bridge.session.session import EMERGENCY

#: Number of buttons on the page, whose others are under Services: of more requests, those that end a motion come first.
MOST_BUTTONS = 8


class Parts:
    """Connections, nodes and programs of one Robot."""

    def __init__(self, robot: type[Any]) -> None:
        """`robot` is the description, a subclass of Robot."""
        self._robot = robot

    def kind(
        self, port: int, ours: Mapping[str, int], *, is_stream: bool, has_robots_end: bool, sends_first: bool
    ) -> ProtocolKind:
        """Return the KIND, given the first port and those of its client, by name, which are parameters.

        A robot without the robot's end has only a bridge and an operator.
        """
        robot, at = self._robot, f"{self._robot.__module__}:{self._robot.__qualname__}.parts"
        agreed = {name: name.replace("_", "-") for name in ("host", "port", *ours)}
        ports = (
            Port("port", port, Side.OPERATOR if sends_first else Side.VEHICLE),
            *(Port(name, number, Side.OPERATOR) for name, number in ours.items()),
        )
        at_once = {"in-the-air": True} if "takeoff" in robot.requests else {}
        emulator = Program(robot.name, robot.summary, f"{at}.emulate", agreed=agreed, at_once=at_once)

        ends = robot.always_accepted
        moving = {name: each.moves and name not in ends for name, each in robot.all_requests.items()}
        stops_at_once = CUT_MOTORS if robot.model == "drone" else Emergency("stop", "the robot stops immediately")

        def node(role: str) -> NodeKind:
            return NodeKind(f"{at}.{role}", f"{at}.{role}_parameters", f"robot_class_{role}", (robot.name,))

        return ProtocolKind(
            name=robot.name,
            summary=robot.summary,
            ports=ports,
            operator_role=Role("client", f"{at}.client"),
            vehicle_role=Role("robot", f"{at}.robots_end"),
            is_stream=is_stream,
            conversation=f"{at}.conversation" if has_robots_end else "",
            commands=f"{at}.commands" if has_robots_end else "",
            faults=f"{at}.faults" if has_robots_end else "",
            topics=f"{at}.table",
            bridge=node("bridge"),
            server=node("server") if has_robots_end else None,
            emulator=emulator if has_robots_end else None,
            operator=replace(emulator, summary=f"a client of {robot.summary}", main=f"{at}.operate"),
            launch_file="vehicle.launch.xml",
            launch_arguments={"robot": robot.name},
            emergencies={name: stops_at_once for name in robot.all_requests if name == EMERGENCY},
            buttons=dict(sorted(moving.items(), key=lambda each: len(moving) > MOST_BUTTONS and each[0] not in ends)),
            model=robot.model,
            axes=robot.axes,
            max_speeds={} if robot.drone else robot.max_speeds,
            watchdog_s=robot.robot_stops_after_s,
        )

    def __getattr__(self, name: str) -> Any:
        """Return a part, imported on first use. Those of nodes and topics need ROS, and the types of its topics."""
        if name in _SIDES:
            return partial(_load("connection:RobotClassConnection"), self._robot, _SIDES[name])
        if name in _FUNCTIONS:
            return partial(_load(_FUNCTIONS[name]), self._robot)
        if name not in _RESULTS:
            raise AttributeError(f"A robot has no part {name!r}.")
        setattr(self, name, result := _load(_RESULTS[name])(self._robot))
        return result


def _load(part: str) -> Any:
    return load(f"{__package__}.{part}")


#: Connections, for tests and relays.
_SIDES = {"client": Side.OPERATOR, "robots_end": Side.VEHICLE}
#: Functions of a robot, and functions whose results for a robot are its parts.
_FUNCTIONS = {
    "conversation": "connection:conversation",
    "commands": "connection:commands",
    "faults": "topics:faults",
    "emulate": "vehicle.emulator:main",
    "operate": "vehicle.operator:main",
}
_RESULTS = {
    "bridge": "bridge:make_node",
    "bridge_parameters": "bridge:parameters",
    "server": "vehicle.server:make_node",
    "server_parameters": "vehicle.server:parameters",
    "table": "topics:make_table",
}
