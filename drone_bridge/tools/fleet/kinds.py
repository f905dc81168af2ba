# SPDX-License-Identifier: Apache-2.0
"""The kinds of vehicles in a fleet: the bridge, emulator and controllers of each protocol."""

import functools
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from drone_bridge.node.parameters import ParameterDeclaration
from drone_bridge.node.program import Stoppable

Value = bool | int | float | str | list[Any]


@dataclass(frozen=True, slots=True)
class NodeKind:
    """A class of nodes and its parameters, imported only when a fleet has one."""

    module: str
    class_name: str
    remappings: tuple[str, ...] = ()
    """As on the command line: old:=new"""

    @property
    def make(self) -> Callable[..., Stoppable]:
        """The class: takes rclpy's options of a node, such as `namespace`."""
        made: Callable[..., Stoppable] = getattr(importlib.import_module(self.module), self.class_name)
        arguments = [word for remapping in self.remappings for word in ("-r", remapping)]
        return functools.partial(made, cli_args=["--ros-args", *arguments]) if arguments else made

    @property
    def declarations(self) -> Mapping[str, ParameterDeclaration]:
        declared = importlib.import_module(self.module).PARAMETERS
        return {declaration.name: declaration for declaration in declared}


@dataclass(frozen=True, slots=True)
class VehicleKind:
    """What belongs to a protocol."""

    bridge: NodeKind
    controller: NodeKind
    control: Mapping[str, Value]  # the controller's parameters, unless the file has others
    emulator: str
    #: Options of the emulator by the parameters of the bridge that they have to agree with.
    agreed: Mapping[str, str]
    #: Options without which several emulators would be in each other's way.
    apart: Mapping[str, Value]
    #: The bridge's parameters when its vehicle is emulated, unless the file has others.
    emulated: Mapping[str, Value] = field(default_factory=dict)
    #: What it looks like: a model of `vehicle_model`.
    model: str = "drone"


_DRONE: Final = NodeKind("drone_bridge.controllers.drone_controller", "DroneController")
_ROVER: Final = NodeKind("drone_bridge.controllers.rover_controller", "RoverController")
MODEL: Final = NodeKind("drone_bridge.tools.vehicle_model", "VehicleModel")
_ADDRESS: Final = {"host": "host", "port": "port"}


def _bridge(protocol: str, class_name: str) -> NodeKind:
    return NodeKind(f"drone_bridge.bridges.{protocol}.bridge", class_name)


KINDS: Final[Mapping[str, VehicleKind]] = {
    "testbed": VehicleKind(
        _bridge("testbed", "TestbedBridge"),
        _DRONE,
        {"behaviour": "seek_target"},
        "testbed",
        _ADDRESS,
        {"realtime": True},
    ),
    "dronegui": VehicleKind(
        _bridge("dronegui", "DroneGuiBridge"),
        replace(_DRONE, remappings=tuple(f"{name}:=dronegui_bridge/{name}" for name in ("takeoff", "land", "hover"))),
        {"behaviour": "flight_plan"},
        "dronegui",
        {**_ADDRESS, "navdata_port": "navdata-port"},
        {"navdata-source-port": 0},
    ),
    "robot": VehicleKind(
        _bridge("robot", "RobotBridge"),
        _ROVER,
        {"pattern": "square"},
        "robot",
        _ADDRESS,
        {"no-discovery": True},
        model="rover",
    ),
    "simulator": VehicleKind(
        _bridge("simulator", "SimulatorBridge"),
        _DRONE,
        {"behaviour": "waypoints"},
        "simulator",
        _ADDRESS,
        {},
        emulated={"run_on_connect": True},
        model="submarine",
    ),
    "telemetry": VehicleKind(
        _bridge("telemetry", "TelemetryBridge"),
        _DRONE,
        {"behaviour": "land_on_pad"},
        "landing",
        _ADDRESS,
        {},
        emulated={"transport": "udp"},
    ),
}
