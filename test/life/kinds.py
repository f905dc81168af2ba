# SPDX-License-Identifier: Apache-2.0
"""KINDS: the vehicles that have lives, by name."""

from ar_drone_vehicles import ArdroneVehicle, DroneguiVehicle
from class_vehicle import ClassVehicle
from robot_vehicle import RobotVehicle
from simulator_vehicle import SimulatorVehicle
from telemetry_vehicle import TelemetryVehicle
from tello_vehicle import TelloVehicle
from testbed_vehicle import TestbedVehicle

KINDS = {
    each.name: each
    for each in (
        RobotVehicle, TelemetryVehicle, TestbedVehicle, SimulatorVehicle, ArdroneVehicle, DroneguiVehicle, TelloVehicle,
        *ClassVehicle.__subclasses__(),
    )
}  # fmt: skip
