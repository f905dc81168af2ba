# SPDX-License-Identifier: Apache-2.0
"""SimulatorClientParameters: parameters of a client's session and its steering."""

from collections.abc import Sequence
from dataclasses import dataclass

from drone_bridge.parameter_fields import parameter
from drone_bridge.simulator.codec import VEHICLE


@dataclass(slots=True)
class SimulatorClientParameters:
    """Parameters, which may change at any time."""

    request_timeout: float = parameter(
        2.0,
        "Timeout of an answer, s. The call then fails. The connection is kept, since the simulator may be suspended.",
        0.05, 60.0,
    )  # fmt: skip
    vehicle: int = parameter(VEHICLE, "ID of the entity that cmd_vel steers.", 0, 0x7FFFFFFF)
    body_to_model: Sequence[float] = parameter(
        (0.0, 0.0, 0.0, 0.0),
        "Rotation from principal axes to the vehicle's model: w, x, y, z as on the wire. Zeros: learned while paused.",
    )
    run_on_connect: bool = parameter(False, "Unpause the simulation on each connection.")
    rate: float = parameter(50.0, "Maximum rate of velocities sent to the vehicle, Hz.", 0.1, 1000.0, live=True)
    release_after: float = parameter(
        5.0, "Time at rest without commands until the vehicle is released, s. 0: never.", 0.0, 3600.0, live=True
    )
