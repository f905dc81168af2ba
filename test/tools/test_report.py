# SPDX-License-Identifier: Apache-2.0
"""A bag as one HTML page: what is read from it, what is plotted, and that the page stands alone."""

import contextlib
import math
import re
import sqlite3

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from nav_msgs.msg import Odometry
from rcl_interfaces.msg import Log
from rosbags.rosbag2 import StoragePlugin
from sensor_msgs.msg import BatteryState, CompressedImage, Image, Imu
from std_msgs.msg import Bool, Float64, String
from written_bags import write_bag

from drone_bridge.tools.bags.bag import BagMessage, BagReader, BagReadError, BagTopic
from drone_bridge.tools.cli import main
from drone_bridge.tools.report.command import write_report
from drone_bridge.tools.report.report_data import (
    MAX_POINTS,
    PICTURES,
    ReportPicture,
    numbers_in,
    read_report_data,
    thinned,
)

pytest.importorskip("plotly", reason="rosdep has no key for it")
from drone_bridge.tools.report import figures
from drone_bridge.tools.report.page import data_uri

SECOND = 10**9
START = 1_700_000_000 * SECOND


def odometry(x):
    message = Odometry()
    message.pose.pose.position.x = x
    message.pose.pose.orientation.z = message.pose.pose.orientation.w = math.sqrt(0.5)
    return message


def image(red):
    return Image(height=2, width=3, step=9, encoding="rgb8", data=bytes([red, 0, 0] * 6))


def report(level, sentence):
    return DiagnosticArray(status=[DiagnosticStatus(name="bridge: link", level=bytes([level]), message=sentence)])


@pytest.fixture
def flight(tmp_path):
    """Ten seconds of a vehicle that goes along x, takes off after 2 s, and loses its peer at 6 s."""
    messages = []
    for second in range(11):
        at = START + second * SECOND
        messages += [
            ("/odom", at, odometry(second * 0.5)),
            ("/camera/image_raw", at, image(second * 20)),
            ("/camera/compressed", at, CompressedImage(format="jpeg", data=b"\xff\xd8not looked into\xff\xd9")),
            ("/flying", at, Bool(data=second >= 2)),
            ("/diagnostics", at, report(0, "connected") if second < 6 else report(2, "<no peer>")),
        ]
    messages.append(("/rosout", START + 6 * SECOND, Log(level=30, name="bridge", msg="The peer <has gone>.")))
    messages.append(("/rosout", START + 7 * SECOND, Log(level=20, name="bridge", msg="Quiet.")))
    return write_bag(tmp_path / "flight", sorted(messages, key=lambda message: message[1]))


@pytest.fixture
def data(flight):
    with BagReader(flight) as bag:
        return read_report_data(bag)


def test_the_path_has_every_position(data):
    assert data.tracks["/odom"] == [(float(s), s * 0.5, 0.0, 0.0) for s in range(11)]


def test_states_become_intervals(data):
    assert [(spell.state, spell.from_s, spell.to_s) for spell in data.states["/flying"]] == [
        ("False", 0.0, 2.0),
        ("True", 2.0, pytest.approx(10.0)),
    ]


def test_a_text_of_several_lines_or_a_long_one_is_no_state(tmp_path):
    texts = {"/mode": "landing", "/robot_description": "<robot>\n</robot>", "/document": "x" * 61}
    bag = write_bag(tmp_path / "flight", [(name, START, String(data=text)) for name, text in texts.items()])
    with BagReader(bag) as opened:
        assert list(read_report_data(opened).states) == ["/mode"]


def test_diagnostics_are_merged_while_they_say_the_same(data):
    bars = figures.states(data.diagnostics).data[0]
    assert list(bars.text) == ["OK", "ERROR"]
    assert list(bars.base) == [0.0, 6.0]
    assert list(bars.x) == [6.0, 4.0]
    assert list(bars.customdata) == ["connected", "<no peer>"]


def test_pictures_are_spread_over_the_whole_time(data):
    for topic in ("/camera/image_raw", "/camera/compressed"):
        times = [picture.time_s for picture in data.pictures[topic]]
        assert len(times) == PICTURES + 1 or len(times) == PICTURES
        assert times[0] == 0.0
        assert times[-1] >= 8.0


def test_a_compressed_picture_goes_into_the_page_as_it_is(data):
    assert data_uri(data.pictures["/camera/compressed"][0]).startswith("data:image/jpeg;base64,/9hub3Qg")


@pytest.mark.parametrize(
    ("encoding", "width", "is_shown"),
    [("rgb8", 3, True), ("mono8", 3, True), ("bgr8", 1, True), ("rgba8", 3, False), ("bayer_rggb8", 3, False)],
)
def test_an_image_is_shown_by_its_encoding_however_long_its_rows_are(encoding, width, is_shown):
    message = Image(height=2, width=width, step=9, encoding=encoding, data=bytes(18))
    uri = data_uri(ReportPicture(0.0, "sensor_msgs/msg/Image", message))
    assert (uri or "").startswith("data:image/jpeg;base64,") == is_shown


def test_a_topic_that_can_t_be_decoded_is_left_out_and_the_page_says_why(tmp_path):
    messages = [("/flying", START + s * SECOND, Bool(data=True)) for s in range(3)]
    messages += [("/number", START + s * SECOND, Float64(data=1.0)) for s in range(3)]
    path = write_bag(tmp_path / "bag", messages, storage=StoragePlugin.SQLITE3)
    with contextlib.closing(sqlite3.connect(next(path.glob("*.db3")))) as database, database:
        database.execute("UPDATE messages SET data = x'00' WHERE length(data) < 12")
    page = write_report(path).read_text()
    assert "/flying is left out: " in page
    assert "<h3>/number</h3>" in page
    unknown = BagTopic("/wheel", "lab_msgs/msg/Wheel", "", (), 1)
    with BagReader(path) as bag, pytest.raises(BagReadError, match="no definition of 'lab_msgs/msg/Wheel'"):
        bag.deserialize(BagMessage(unknown, START, b"\0\1\0\0"))


def test_rotations_are_in_degrees_and_covariances_are_left_out(data):
    columns = data.series["/odom"].columns
    assert columns["orientation yaw, deg"][3] == pytest.approx(90.0)
    assert columns["position.x"][3] == 1.5
    assert not [name for name in columns if "covariance" in name]


def test_numbers_of_a_message_that_marks_unknowns(tmp_path):
    bag_path = write_bag(tmp_path / "imu", [("/imu", START, Imu()), ("/battery", START, BatteryState())])
    with BagReader(bag_path) as bag:
        decoded = {message.topic.name: bag.deserialize(message) for message in bag.messages()}
        message, battery = decoded["/imu"], decoded["/battery"]
    assert "voltage" in dict(numbers_in(battery))
    assert not [name for name, _ in numbers_in(battery) if name.isupper()]  # its constants
    names = dict(numbers_in(message))
    assert set(names) == {
        *(f"orientation {axis}, deg" for axis in ("roll", "pitch", "yaw")),
        *(f"{vector}.{axis}" for vector in ("angular_velocity", "linear_acceleration") for axis in "xyz"),
    }


def test_thinning_keeps_peaks():
    times = np.arange(100_000) / 100
    values = np.sin(times)
    values[54_321] = 50.0
    values[12_345] = -50.0
    values[:10] = np.nan
    t, v = thinned(times, values)
    assert len(t) <= MAX_POINTS
    assert np.all(np.diff(t) > 0)
    assert np.nanmax(v) == 50.0
    assert np.nanmin(v) == -50.0


def test_a_camera_is_shown_once_and_what_has_no_images_not_at_all(tmp_path):
    picture = CompressedImage(format="jpeg", data=b"\xff\xd8\xff\xd9")
    messages = [(f"/{side}/image_raw", START, image(1)) for side in ("left", "right", "down")]
    messages += [(f"/{side}/image_raw/compressed", START, picture) for side in ("left", "right", "up")]
    with BagReader(write_bag(tmp_path / "cameras", messages)) as bag:
        assert set(read_report_data(bag).pictures) == {
            *("/left/image_raw", "/right/image_raw", "/down/image_raw", "/up/image_raw/compressed")
        }


@pytest.mark.parametrize(("start", "said"), [(850_000_000, "0.850 s of simulated time"), (START, "2023-11-14 ")])
def test_it_names_its_start_time(tmp_path, capsys, start, said):
    path = write_bag(tmp_path / "flight", [("/flying", start, Bool())])
    page = tmp_path / "page.html"
    assert main(["info", str(path)]) == 0
    assert main(["report", str(path), "--output", str(page)]) == 0
    assert f"begins at {said}" in capsys.readouterr().out
    assert f"begins at {said}" in page.read_text()
    assert f"<h1>{tmp_path.name}/flight</h1>" in page.read_text()


def test_page_stands_alone_and_escapes_what_it_shows(flight, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main(["report", str(flight), "--output", str(page)]) == 0
    assert str(page) in capsys.readouterr().out
    text = page.read_text()
    assert not re.search(r"<(script|link|img|iframe)[^>]+(src|href)=.(?!data:)", text)
    assert "The peer &lt;has gone&gt;." in text
    assert "Quiet." not in text
    for heading in ("Track", "States", "Camera images", "Diagnostics", "Events", "Numbers"):
        assert f"<h2>{heading}" in text
    assert '"shape":"hv"' in text.replace(" ", "")  # a boolean has no values between two
    assert text.replace(" ", "").count('"gridcolor":"#888"') == 3  # of the 3D box, on a light and a dark page
    assert "/odom" in text


def test_a_page_that_can_t_be_written_is_named_in_a_sentence(tmp_path, capsys):
    bag = write_bag(tmp_path / "bag", [("/flying", START, Bool())])
    page = tmp_path / "absent" / "page.html"
    assert main(["report", str(bag), "-o", str(page)]) == 1
    assert f"'{page}' can't be written" in capsys.readouterr().err


def test_a_plotted_field_has_its_unit():
    named = [figures.unit_of(name, "geometry_msgs/msg/Twist") for name in ("linear.x", "angular.z", "mode")]
    assert named == ["m/s", "rad/s", ""]
    assert figures.unit_of("thrust", "drone_bridge/msg/CommandAxes") == "share"
