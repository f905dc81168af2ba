# SPDX-License-Identifier: Apache-2.0
"""KINDS: the vehicles that have lives, by name."""

from class_vehicle import Create2Vehicle, KobukiVehicle, PioneerVehicle, RoboMasterVehicle
from robot_vehicle import RobotVehicle
from telemetry_vehicle import TelemetryVehicle
from tello_vehicle import TelloVehicle

KINDS = {
    each.name: each
    for each in (
        RobotVehicle, TelemetryVehicle, TelloVehicle,
        Create2Vehicle, KobukiVehicle, PioneerVehicle, RoboMasterVehicle,
    )
}  # fmt: skip
