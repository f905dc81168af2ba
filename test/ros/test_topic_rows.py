# SPDX-License-Identifier: Apache-2.0
"""Name, type, QoS, frame and counter of every row of every protocol, compared with a table: topic_rows.md."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from own_robots import Pioneer, Tello
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy

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
from drone_bridge.robot_class import Camera, Lidar, Picture, Robot, Telemetry, Udp
from drone_bridge.robot_class.connection import StatePacket
from drone_bridge.robot_class.robot import STANDARD_TOPICS
from drone_bridge.ros.topics.frames import DroneFrameNames
from drone_bridge.telemetry.codec import DroneTelemetry
from drone_bridge.telemetry.units import Units as TelemetryUnits
from drone_bridge.testbed.codec import SensorFrame
from drone_bridge.vision.jpegs import opencv

TABLE = Path(__file__).with_name("topic_rows.md")
COLUMNS = ("topic", "type", "published", "taken", "frame", "counter")


class WithJpegs(Robot):
    """Robot whose telemetry fills every standard topic."""

    name, control = "robot_with_jpegs", Udp(1)
    model, topics, camera = "drone", STANDARD_TOPICS, Camera("jpeg")
    lidar = Lidar(0.1, 5.0, 0.2, rays=1)


class WithPixels(Robot):
    name, control, topics, camera = "robot_with_pixels", Udp(1), (), Camera("rgb8")


KINDS = {name: kinds()[name] for name in OWN} | {
    robot.name: robot.KIND for robot in (Pioneer, Tello, WithJpegs, WithPixels)
}


def jpeg():
    return opencv().imencode(".jpg", np.zeros((8, 8, 3), np.uint8))[1].tobytes()


def further(name):
    """Return wire messages that the sample conversation of a protocol lacks."""
    told = Telemetry((1.0, 2.0, 3.0), 0.5, BodyVelocity(1.0), 12.0, 0.5, 3.0, jpeg(), roll=0.1, pitch=0.1, scan=(1.0,))
    told = replace(told, contacts=((0.25, 0.0, 0.125),))
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
    if name == WithJpegs.name:
        return [StatePacket(b"", told)]
    if name == WithPixels.name:
        return [StatePacket(b"", replace(told, image=Picture(1, 1, bytes(3))))]
    return []


def measured_by_an_ardrone():
    """Return what the sample conversation of a flying drone reports."""
    found = (sent.message for sent in sample("ardrone") if isinstance(sent.message, Navdata))
    return [measured for navdata in found if (measured := ardrone_units.measurement(navdata)).velocity]


def sample(name):
    return load(KINDS[name].conversation)() if KINDS[name].conversation else ()


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


def qos_text(profile):
    """Return a profile in words: depth 10, reliable and volatile unless stated."""
    words = [f"depth {profile.depth}"]
    words += ["best effort"] * (profile.reliability == ReliabilityPolicy.BEST_EFFORT)
    words += ["latched"] * (profile.durability == DurabilityPolicy.TRANSIENT_LOCAL)
    return ", ".join(words)


def rows_of(name):
    """Return the rows of a protocol as cells, sorted: a table may list them in any order."""
    table = load(KINDS[name].topics)
    frames = frames_of(name, table)
    return sorted(
        {
            (
                row.name,
                f"{row.message.__module__.partition('.')[0]}/{row.message.__name__}",
                qos_text(row.qos()) if row.to_ros else "",
                qos_text(row.requested()) if row.from_ros else "",
                ", ".join(frames[row.to_ros]) if row.to_ros else "",
                row.count,
            )
            for row in table.rows
        }
    )


def pinned():
    """Return the cells of the table, by protocol."""
    found = defaultdict(list)
    for line in TABLE.read_text().splitlines():
        if line.startswith("## "):
            rows = found[line.removeprefix("## ")]
        elif line.startswith("|") and not line.startswith(("| topic ", "|--")):
            rows.append(tuple(cell.strip() for cell in line.strip("|").split("|")))
    return {name: sorted(rows) for name, rows in found.items()}


def text_of(name):
    """Return the section of a protocol, as it should stand in the table."""
    cells = [COLUMNS, *rows_of(name)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in cells]
    lines.insert(1, "|-" + "-|-".join("-" * width for width in widths) + "-|")
    return "\n".join((f"## {name}", "", *lines, ""))


def test_the_table_has_every_protocol():
    assert sorted(pinned()) == sorted(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_rows_have_the_pinned_name_type_qos_frame_and_counter(name):
    """A change here is seen by users: their subscriptions, bags and transforms depend on it."""
    assert pinned()[name] == rows_of(name), f"If this is intended, the table needs:\n\n{text_of(name)}"


@pytest.mark.parametrize("name", ["ardrone", "dronegui", "telemetry"])
def test_a_report_is_converted_once_for_all_its_rows(name, monkeypatch):
    table, converted = load(KINDS[name].topics), []
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
