# SPDX-License-Identifier: Apache-2.0
"""The telemetry protocol, all roles: the document's examples, refusals, and arbitrary documents."""

import base64
import copy
import json
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from operator import getitem

import cv2
import numpy as np
import pytest
import telemetry_documents
from hypothesis import given
from hypothesis import strategies as st
from telemetry_documents import ROVER

from drone_bridge.telemetry import codec
from drone_bridge.wire import jpeg
from drone_bridge.wire.events import RemoteProtocolError


def jpeg_of(width, height, *options):
    return cv2.imencode(".jpg", np.full((height, width, 3), 128, np.uint8), options)[1].tobytes()


JPEG = jpeg_of(32, 24)

COMMAND = {"thrust": 0.5, "pitch": 0.1, "roll": -0.2, "yaw": 0.0}
DRONE = telemetry_documents.drone(JPEG)
DRONE_MESSAGE = codec.DroneTelemetry(
    codec.Imu(codec.Orientation(0.1, -0.2, 0.3), codec.Vector(0.01, 0.02, 0.03), codec.Vector(0.5, -0.5, 9.81)),
    codec.Altimeter(altitude=5.0, vertical_velocity=-0.1),
    codec.Vector(1.0, -0.5, -0.1),
    codec.LandingPad(relative_x=0.5, relative_y=-0.2, distance=4.5, confidence=0.85),
    codec.Camera(width=32, height=24, fov=60.0, jpeg=JPEG),
    landed=False,
    timestamp=1.234,
)
ROVER_MESSAGE = codec.RoverTelemetry(codec.Vector(1.5, 0.8, 0.15), codec.Vector(0.3, 0.4, 0.0), "circular", 1.234)


def receive(connection, document, *sender):
    """Pass one document to a connection and return its event."""
    document = json.dumps(document) if isinstance(document, dict) else document
    connection.receive_data(document, *sender)
    try:
        return connection.next_event()
    finally:
        assert connection.next_event() is codec.NEED_DATA


def refusal(document, *sender, connection=None):
    with pytest.raises(RemoteProtocolError) as refused:
        receive(connection or codec.ControllerConnection(), document, *sender)
    return str(refused.value)


def image_problem(document, connection=None):
    """Return why a document's image is unreadable, while the rest is accepted."""
    telemetry = receive(connection or codec.ControllerConnection(), document)
    assert replace(telemetry, camera=DRONE_MESSAGE.camera) == DRONE_MESSAGE
    assert telemetry.camera == replace(DRONE_MESSAGE.camera, jpeg=None)
    return telemetry.camera.problem


def changed(document, path, value):
    """Return a copy with another value at a path such as imu.orientation.roll."""
    return telemetry_documents.changed(document, **{path.replace(".", "__"): value})


def without(document, path):
    document = copy.deepcopy(document)
    *parents, name = path.split(".")
    del reduce(getitem, parents, document)[name]
    return document


def with_image(image):
    return changed(DRONE, "camera.image", base64.b64encode(image).decode())


def paths(document, prefix=""):
    for name, value in document.items():
        yield f"{prefix}{name}"
        if isinstance(value, dict):
            yield from paths(value, f"{prefix}{name}.")


# The document's examples.


def test_the_documents_examples_are_read():
    assert receive(codec.ControllerConnection(), DRONE) == DRONE_MESSAGE
    assert receive(codec.ControllerConnection(), ROVER) == receive(codec.DroneConnection(), ROVER) == ROVER_MESSAGE
    assert receive(codec.DroneConnection(), COMMAND) == codec.DroneCommand(thrust=0.5, pitch=0.1, roll=-0.2, yaw=0.0)


def test_what_is_sent_is_what_the_document_shows():
    assert json.loads(codec.DroneConnection().send(DRONE_MESSAGE)) == DRONE
    least = json.loads(codec.DroneConnection().send(replace(DRONE_MESSAGE, landing_pad=None, landed=None)))
    assert least == {**without(DRONE, "landed"), "landing_pad": None}
    assert json.loads(codec.RoverConnection().send(ROVER_MESSAGE)) == ROVER
    assert json.loads(codec.ControllerConnection().send(codec.DroneCommand(0.5, 0.1, -0.2, 0.0))) == COMMAND


# Optional and required fields.

OPTIONAL = {
    "imu.linear_acceleration": replace(DRONE_MESSAGE, imu=replace(DRONE_MESSAGE.imu, linear_acceleration=None)),
    "camera.fov": replace(DRONE_MESSAGE, camera=replace(DRONE_MESSAGE.camera, fov=None)),
    "camera.image": replace(DRONE_MESSAGE, camera=replace(DRONE_MESSAGE.camera, jpeg=None)),
    "landing_pad": replace(DRONE_MESSAGE, landing_pad=None),
    "landed": replace(DRONE_MESSAGE, landed=None),
    "timestamp": replace(DRONE_MESSAGE, timestamp=None),
}


@pytest.mark.parametrize("path", OPTIONAL)
def test_what_may_be_null_may_be_missing(path):
    assert receive(codec.ControllerConnection(), without(DRONE, path)) == OPTIONAL[path]
    assert receive(codec.ControllerConnection(), changed(DRONE, path, None)) == OPTIONAL[path]


@pytest.mark.parametrize("path", sorted(set(paths(DRONE)) - set(OPTIONAL)))
def test_a_missing_field_of_a_drone_is_named(path):
    assert refusal(without(DRONE, path), "drone") == f"{path} is missing."


def test_unknown_fields_are_ignored():
    document = copy.deepcopy(DRONE)
    for inner in (document, document["imu"], document["imu"]["orientation"], document["landing_pad"]):
        inner.update({"gps": [1, {"a": {}}], "Roll": "x", "": None})
    assert receive(codec.ControllerConnection(), document) == DRONE_MESSAGE
    assert receive(codec.DroneConnection(), {**COMMAND, "mode": "x", "timestamp": "now"}) == codec.DroneCommand(
        0.5, 0.1, -0.2, 0.0
    )


# Values.

NO_NUMBERS = [True, None, "1", [1.0], {}, 1e300, 10**30]
NUMBERS = [
    *(f"imu.orientation.{name}" for name in DRONE["imu"]["orientation"]),
    *(f"{group}.{axis}" for group in ("imu.angular_velocity", "imu.linear_acceleration", "velocity") for axis in "xyz"),
    *("altimeter.altitude", "altimeter.vertical_velocity", *(f"landing_pad.{name}" for name in DRONE["landing_pad"])),
]


@pytest.mark.parametrize("path", NUMBERS)
def test_a_value_that_is_no_number_is_named(path):
    for value in (*NO_NUMBERS, -codec.MAX_MAGNITUDE * 1.01):
        sentence = refusal(changed(DRONE, path, value))
        assert sentence.startswith(f"{path} is ")
        assert "must be a number from" in sentence


@pytest.mark.parametrize(
    ("path", "value"),
    [
        *(("imu", value) for value in (None, "x", [])),
        ("imu.orientation", [0, 0, 0]),
        *(("landing_pad", value) for value in (False, "null", [])),
        *(("landing_pad.confidence", value) for value in (-0.01, 1.01)),
        *(("camera.width", value) for value in (0, 4097, 320.5, 1e300, True, None, "320")),
        *(("camera.height", value) for value in (0, 4097)),
        *(("camera.fov", value) for value in (0.9, 179.1, "60")),
        *(("landed", value) for value in (0, "false" * 10_000)),
        *(("timestamp", value) for value in (-0.001, codec.MAX_TIMESTAMP_S + 1, "1.2")),
    ],
)
def test_an_impossible_value_is_named(path, value):
    sentence = refusal(changed(DRONE, path, value), "drone")
    assert sentence.startswith(f"{path} is ")
    assert len(sentence) < 200


@pytest.mark.parametrize("field", COMMAND)
def test_an_invalid_command_is_refused(field):
    for value in NO_NUMBERS[:-2]:  # the last ones are beyond any range, and are clamped
        assert refusal(changed(COMMAND, field, value), connection=codec.DroneConnection()).startswith(f"{field} is ")


@pytest.mark.parametrize(("field", "most"), [("thrust", 1.0), ("pitch", 0.5), ("roll", 0.5), ("yaw", 0.5)])
def test_a_command_beyond_its_range_means_the_end_of_it(field, most):
    """From a controller that saturates."""
    for beyond in (1.01, 7, 1e300, 10**30):
        for sign in (1, -1):
            command = receive(codec.DroneConnection(), changed(COMMAND, field, sign * beyond))
            assert getattr(command, field) == sign * most
            assert command.problem.startswith(f"{field} is ")
    assert receive(codec.DroneConnection(), changed(COMMAND, field, most)).problem == ""


def test_integers_are_numbers():
    assert receive(codec.ControllerConnection(), changed(DRONE, "altimeter.altitude", 5)) == DRONE_MESSAGE
    assert receive(codec.DroneConnection(), changed(COMMAND, "thrust", 1)).thrust == 1.0
    width = receive(codec.ControllerConnection(), changed(DRONE, "camera.width", 320.0)).camera.width
    assert (width, type(width)) == (320, int)


# Documents.


def test_a_value_that_is_no_object_is_refused():
    for document in (b"[]", b"null", b"1", b'"{}"'):
        assert "not an object" in refusal(document)


def test_the_sender_is_recognised_by_the_fields():
    assert "neither" in refusal(b"{}")
    assert receive(codec.ControllerConnection(), {**DRONE, "position": None}) == DRONE_MESSAGE
    assert receive(codec.DroneConnection(), {**COMMAND, "position": None}).thrust == 0.5


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_deep_nesting_is_refused(opening, closing):
    nested = f"{opening * 60_000}1{closing * 60_000}"
    for text in (opening * 60_000, nested, f'{json.dumps(DRONE)[:-1]}, "note": {nested}}}'):
        assert refusal(text).startswith("The document ")


def test_a_document_is_not_larger_than_its_image_may_be():
    letters = codec.MAX_IMAGE_BYTES // 3 * 4
    padded = json.dumps({**DRONE, "note": "x" * letters})
    assert receive(codec.ControllerConnection(), padded) == DRONE_MESSAGE
    padded = json.dumps({**DRONE, "note": "x" * (letters + letters // 16 + 65536)})
    assert "limit" in refusal(padded)


@pytest.mark.parametrize("kind", [str, str.encode])
def test_a_large_document_is_not_of_many_small_values(kind):
    many = json.dumps({**DRONE, "note": [[]] * 100_000})
    assert "more than 20000 values" in refusal(kind(many))


# Images.


def test_an_image_has_to_be_text():
    assert image_problem(changed(DRONE, "camera.image", 1)).startswith("camera.image is 1, ")


def test_an_image_has_to_be_base64():
    text = base64.b64encode(JPEG).decode()
    assert text.endswith("=")
    for damaged in (text[:-1], text + "=", text[:9] + "-" + text[10:], text[:9] + "\0" + text[9:], "é" * 8):
        assert image_problem(changed(DRONE, "camera.image", damaged)).startswith("camera.image is not base64: ")


def lines(length, end):
    """Return text that separates lines."""
    return lambda text: "".join(text[start : start + length] + end for start in range(0, len(text), length))


@pytest.mark.parametrize(("length", "end"), [(1, " "), (64, "\r\n"), (76, "\n"), (1_000_000, " \t\v\f\n")])
def test_base64_may_be_in_lines(length, end):
    text = base64.b64encode(JPEG).decode()
    for broken in (lines(length, end)(text), end + text):
        assert receive(codec.ControllerConnection(), changed(DRONE, "camera.image", broken)) == DRONE_MESSAGE


def test_base64_in_lines_may_be_as_large_as_in_one():
    jpeg_of_the_limit = JPEG + bytes(codec.MAX_IMAGE_BYTES - len(JPEG))
    document = changed(DRONE, "camera.image", lines(64, "\r\n")(base64.b64encode(jpeg_of_the_limit).decode()))
    assert receive(codec.ControllerConnection(), document).camera.jpeg == jpeg_of_the_limit


def test_an_image_that_is_no_jpeg_or_too_large_by_its_header_is_left_out():
    for image in (b"", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\xff\xd8"):
        assert image_problem(with_image(image)).startswith("camera.image begins with ")
    for width, height in ((4097, 8), (8, 4097)):
        assert f"{width} x {height} pixels" in image_problem(with_image(jpeg_of(width, height)))


def test_the_size_of_an_image_is_checked_before_it_is_decoded():
    # Invalid base64, but the error is about the size.
    letters = codec.MAX_IMAGE_BYTES // 3 * 4 * 17 // 16 + 17
    assert f"{letters} letters of base64" in image_problem(changed(DRONE, "camera.image", "?" * letters))
    large = JPEG + bytes(codec.MAX_IMAGE_BYTES + 1 - len(JPEG))
    assert f"has {codec.MAX_IMAGE_BYTES + 1} bytes" in image_problem(with_image(large))


def test_a_jpeg_cut_inside_its_header_is_left_out():
    header = JPEG.index(b"\xff\xc0") + 9
    for end in range(3, header):
        assert image_problem(with_image(JPEG[:end])).startswith("camera.image ")


def test_a_thumbnail_is_not_the_image():
    thumbnail = b"Exif\0\0" + jpeg_of(5, 5)
    segment = b"\xff\xe1" + (len(thumbnail) + 2).to_bytes(2, "big") + thumbnail
    assert jpeg.read_size(JPEG[:2] + segment + JPEG[2:]) == (32, 24)


@pytest.mark.parametrize("marker", [b"\xff", b"\xff\xd0", b"\xff\xfe\x00\x02"])
def test_a_jpeg_of_very_many_markers_is_left_out(marker):
    few, many = (JPEG[:2] + count * marker + JPEG[2:] for count in (jpeg.MAX_MARKERS - 10, jpeg.MAX_MARKERS))
    assert jpeg.read_size(few) == (32, 24)
    assert "more than 1000 markers" in image_problem(with_image(many))


# Loss, reordering, restarts.


def at(timestamp, document=DRONE):
    return changed(document, "timestamp", timestamp)


def test_late_documents_are_discarded():
    connection = codec.ControllerConnection()
    receive(connection, at(10.0))
    assert receive(connection, at(9.96)) == codec.LateTelemetry("drone", 9.96, 10.0)
    assert receive(connection, at(9.0)) == codec.LateTelemetry("drone", 9.0, 10.0)
    assert receive(connection, at(10.0)).timestamp == 10.0
    assert receive(connection, at(17.0)).timestamp == 17.0


def test_a_large_step_back_in_time_is_a_restart():
    connection = codec.ControllerConnection()
    receive(connection, at(100.0))
    assert receive(connection, at(0.04)).timestamp == 0.04
    assert receive(connection, at(0.0)) == codec.LateTelemetry("drone", 0.0, 0.04)


def test_a_refused_document_changes_nothing():
    connection = codec.ControllerConnection()
    receive(connection, at(10.0))
    refusal(changed(at(500.0), "landed", 1), connection=connection)
    assert receive(connection, at(10.04)).timestamp == 10.04


# Arbitrary documents.


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


@given(st.sampled_from([DRONE, ROVER, COMMAND]), st.data())
def test_any_value_anywhere_is_an_event_or_a_refusal(document, data):
    path = data.draw(st.sampled_from(sorted(paths(document))))
    text = json.dumps(changed(document, path, data.draw(json_values)))
    for connection in (codec.ControllerConnection(), codec.DroneConnection()):
        connection.receive_data(text)
        with suppress(RemoteProtocolError):
            assert isinstance(connection.next_event(), (codec.DroneTelemetry, codec.RoverTelemetry, codec.DroneCommand))
        assert connection.next_event() is codec.NEED_DATA
