# SPDX-License-Identifier: Apache-2.0
"""The emulated drone from its commander's view: commands in, telemetry documents out."""

import math
from dataclasses import replace

import cv2
import numpy as np
import pytest
from pad_flight import PadFlight

from drone_bridge.telemetry import codec
from drone_bridge.telemetry.vehicle.emulator.__main__ import STAYS_S, Watch
from drone_bridge.telemetry.vehicle.emulator.rover import ROVER_Z, RoverPattern
from drone_bridge.telemetry.vehicle.emulator.scene import PAD_HEIGHT
from drone_bridge.telemetry.vehicle.emulator.world import (
    LANDING_GEAR,
    PERIOD_S,
    FlightSetup,
    LandingFlight,
    LandingPhase,
)
from drone_bridge.vision.marker_detector import MarkerDetector
from drone_bridge.vision.markers import MarkerParameters

BLIND = FlightSetup(images=False)


def frames(vehicle, count):
    return [vehicle.advance() for _ in range(count)]


def test_every_document_can_be_read_and_fits_into_a_datagram():
    vehicle = LandingFlight(FlightSetup(seed=2, pattern=RoverPattern.CIRCULAR))
    drone, controller = codec.DroneConnection(), codec.ControllerConnection()
    vehicle.follow_command(codec.DroneCommand(thrust=-0.2, pitch=0.1, roll=-0.1, yaw=0.3))
    for telemetry in frames(vehicle, 25):
        document = drone.send(telemetry)
        assert len(document) < 64 * 1024
        controller.receive_data(document)
        read = controller.next_event()
        assert isinstance(read, codec.DroneTelemetry)
        assert (read.camera.width, read.camera.height, read.camera.fov) == (320, 240, 60.0)
        assert read.landed is False


def test_the_image_shows_the_pad_where_the_telemetry_says():
    vehicle = LandingFlight(FlightSetup(gusts=0.0))
    vehicle.drone.position[:2] = (0.6, -0.4)
    vehicle.drone.yaw = 0.8
    telemetry = vehicle.advance()
    image = cv2.imdecode(np.frombuffer(telemetry.camera.jpeg, np.uint8), cv2.IMREAD_COLOR)
    (corners,) = MarkerDetector(MarkerParameters()).detect(image).values()
    column, row = corners.mean(axis=0)
    pad = telemetry.landing_pad
    focal = 160 / math.tan(math.radians(30))
    assert column == pytest.approx(159.5 - focal * pad.relative_y / pad.distance, abs=10)
    assert row == pytest.approx(119.5 - focal * pad.relative_x / pad.distance, abs=10)


def test_flights_are_reproducible():
    setup = FlightSetup(seed=4, pattern=RoverPattern.RANDOM, images=False)
    one, same, other = LandingFlight(setup), LandingFlight(setup), LandingFlight(replace(setup, seed=5))
    for vehicle in (one, same, other):
        vehicle.follow_command(codec.DroneCommand(pitch=0.1))
    seen = frames(one, 100)
    assert seen == frames(same, 100)
    assert seen != frames(other, 100)


def test_it_starts_on_the_ground_if_configured():
    vehicle = LandingFlight(replace(BLIND, starts_on_ground=True))
    telemetry = vehicle.advance()
    assert telemetry.landed
    assert vehicle.touchdown is None
    assert telemetry.altimeter.altitude == pytest.approx(LANDING_GEAR, abs=0.1)
    vehicle.follow_command(codec.DroneCommand(thrust=1.0))
    assert not frames(vehicle, 50)[-1].landed
    assert vehicle.drone.position[2] > 1


@pytest.mark.parametrize(
    ("pattern", "expected"), [(RoverPattern.FOLLOW, (1.0 + 0.5 * PERIOD_S, 2.0)), (RoverPattern.STATIONARY, (0.0, 0.0))]
)
def test_only_a_rover_that_follows_is_led(pattern, expected):
    vehicle = LandingFlight(replace(BLIND, pattern=pattern))
    vehicle.move_rover(
        codec.RoverTelemetry(codec.Vector(1.0, 2.0, ROVER_Z), codec.Vector(0.5, 0.0, 0.0), "square", 1.0)
    )
    vehicle.advance()
    assert vehicle.world.rover.position == pytest.approx(expected)


def test_it_sends_the_telemetry_of_its_rover():
    vehicle = LandingFlight(replace(BLIND, pattern=RoverPattern.CIRCULAR))
    frames(vehicle, 25)
    controller = codec.ControllerConnection()
    controller.receive_data(codec.RoverConnection().send(vehicle.rover_telemetry()))
    read = controller.next_event()
    assert isinstance(read, codec.RoverTelemetry)
    assert read.pattern == "circular"
    assert math.hypot(read.position.x, read.position.y) == pytest.approx(2.0)
    assert math.hypot(read.velocity.x, read.velocity.y) == pytest.approx(0.5)
    assert read.position.z == 0.15 == PAD_HEIGHT / 2
    assert read.timestamp == pytest.approx(1.0)


def test_a_good_landing_ends_it_a_second_later():
    flight = PadFlight("circular", 1)
    watch, lines = Watch(flight.vehicle), []
    while not watch.has_landed_well:
        flight.advance()
        lines += watch.changes()
    touchdown, world = flight.vehicle.touchdown, flight.vehicle.world
    assert touchdown.is_good
    assert touchdown.describe() in lines
    assert world.time == pytest.approx(touchdown.time + STAYS_S, abs=PERIOD_S)
    assert world.phase is LandingPhase.ON_ROVER
