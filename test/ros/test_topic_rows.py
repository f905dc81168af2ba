# SPDX-License-Identifier: Apache-2.0
"""Frames and counter of each row of our protocols, by the table topic_rows.md. Types and QoS: docs/reference."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builtin_interfaces.msg import Time

from drone_bridge.ar_drone.cameras import FRONT, FRONT_2
from drone_bridge.ardrone import units as ardrone_units
from drone_bridge.ardrone.codec import Navdata
from drone_bridge.dronegui import units
from drone_bridge.dronegui.codec import Demo
from drone_bridge.kind import OWN, kinds, load
from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.dead_reckoning import DeadReckoning
from drone_bridge.motion.measurement import Measurement
from drone_bridge.pictures.topics import CameraPicture, CameraTranslation, VideoPacket
from drone_bridge.ros.topics.frames import DroneFrameNames
from drone_bridge.telemetry.codec import DroneTelemetry
from drone_bridge.telemetry.units import Units as TelemetryUnits
from drone_bridge.testbed.codec import SensorFrame
from drone_bridge.vision.jpegs import opencv

TABLE = Path(__file__).with_name("topic_rows.md")


def jpeg():
    return opencv().imencode(".jpg", np.zeros((8, 8, 3), np.uint8))[1].tobytes()


def further(name):
    """Return wire messages that the sample conversation of a protocol lacks."""
    if name == "testbed":
        return [SensorFrame(bytes(6), bytes(6), 0.0, 0.0, yaw=0.0, position=(1.0, 2.0, 3.0))]
    if name == "dronegui":
        demo = Demo(phi=0.0, theta=0.0, psi=0.0, altitude=1000, vx=0.0, vy=0.0)
        picture = CameraPicture(FRONT, bytes(3 * FRONT.width * FRONT.height), jpeg())
        return [b"{}", DeadReckoning().update(units.measurement(demo), 0.0), VideoPacket(b""), picture]
    if name == "ardrone":
        picture = CameraPicture(FRONT_2, bytes(3 * FRONT_2.width * FRONT_2.height), jpeg())
        return [picture, *(DeadReckoning().update(measured, 0.0) for measured in measured_by_an_ardrone())]
    if name == "robot":
        return [Measurement(position=(1.0, 2.0, 0.0), yaw=0.5, velocity=BodyVelocity(1.0))]
    if name == "telemetry":
        whole = next(sent.message for sent in sample(name) if isinstance(sent.message, DroneTelemetry))
        pose = DeadReckoning().update(TelemetryUnits().measurement(whole), 0.0)
        return [replace(whole, camera=replace(whole.camera, jpeg=jpeg())), pose]
    return []


def measured_by_an_ardrone():
    """Return what the sample conversation of a flying drone reports."""
    found = (sent.message for sent in sample("ardrone") if isinstance(sent.message, Navdata))
    return [measured for navdata in found if (measured := ardrone_units.measurement(navdata)).velocity]


def sample(name):
    return load(kinds()[name].conversation)()


def frames_in(message):
    """Return the frames of a message, in order of appearance: odom > base_link, if it has a child."""
    if hasattr(message, "transforms"):
        return [f"{each.header.frame_id} > {each.child_frame_id}" for each in message.transforms]
    if not hasattr(message, "header"):
        return []
    frame = message.header.frame_id or "empty"
    return [f"{frame} > {message.child_frame_id}" if hasattr(message, "child_frame_id") else frame]


def frames_of(name, table):
    """Return the frames of the messages that a bridge publishes by default, by the function that makes them."""
    translation, frames = table.make_translation(), defaultdict(list)
    pictures = CameraTranslation(DroneFrameNames(), {}, ()) if name in ("dronegui", "ardrone") else None
    for wire in (*(sent.message if sent.read is None else sent.read for sent in sample(name)), *further(name)):
        sources = [(row, wire) for row in table.rows if isinstance(wire, row.of) and "{" not in row.name]
        for row, source in (*sources, *((table.row(topic), part) for topic, part in table.parts(translation, wire))):
            if row.to_ros is None:
                continue
            converter = pictures if row.of in (CameraPicture, VideoPacket) else translation
            message = row.to_ros(converter, source, Time())
            frames[row.to_ros] += [each for each in frames_in(message) if each not in frames[row.to_ros]]
    return frames


def rows_of(name):
    """Return (topic, frames, counter) of each row of a protocol that has one of both, in any order."""
    table = load(kinds()[name].topics)
    frames = frames_of(name, table)
    rows = {(row.name, ", ".join(frames[row.to_ros]) if row.to_ros else "", row.count) for row in table.rows}
    return sorted(row for row in rows if any(row[1:]))


def pinned():
    """Return the cells of the table, by protocol."""
    found = defaultdict(list)
    for line in TABLE.read_text().splitlines():
        if line.startswith("## "):
            rows = found[line.removeprefix("## ")]
        elif line.startswith("|") and not line.startswith(("| topic ", "|--")):
            rows.append(tuple(cell.strip() for cell in line.strip("|").split("|")))
    return {name: sorted(rows) for name, rows in found.items()}


@pytest.mark.parametrize("name", OWN)
def test_rows_have_the_pinned_frames_and_counter(name):
    """A change here is seen by users: their transforms and diagnostics depend on it."""
    assert pinned()[name] == rows_of(name)


@pytest.mark.parametrize("name", ["ardrone", "dronegui", "telemetry"])
def test_a_report_is_converted_once_for_all_its_rows(name, monkeypatch):
    table, converted = load(kinds()[name].topics), []
    translation = table.make_translation()
    measurement = translation.measurement
    monkeypatch.setattr(translation, "measurement", lambda wire: converted.append(wire) or measurement(wire))
    kind = next(row.of for row in table.rows if row.name == "imu/data")
    reports = [sent.message for sent in sample(name) if isinstance(sent.message, kind)]
    for wire in (*reports, *further(name)):
        for row in table.rows:
            if isinstance(wire, kind) and row.of is kind and row.to_ros:
                row.to_ros(translation, wire, Time())
    assert len(converted) == len({id(wire) for wire in converted}) > 0
