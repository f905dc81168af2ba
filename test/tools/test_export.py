# SPDX-License-Identifier: Apache-2.0
"""Tables of a bag, for pandas."""

import csv

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PoseStamped, TransformStamped
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Image, Imu, JointState
from std_msgs.msg import Float64MultiArray, String
from tf2_msgs.msg import TFMessage
from written_bags import write_bag

from drone_bridge.tools.cli import main

SECOND = 10**9
START = 1_700_000_000 * SECOND


def odometry(number):
    message = Odometry()
    message.header.frame_id, message.header.stamp.sec, message.header.stamp.nanosec = "odom", 1_700_000_000, number
    message.pose.pose.position.x, message.pose.pose.orientation.w = number / 10, 1.0
    message.pose.covariance[35] = 0.25
    return message


def transform(child, x):
    message = TransformStamped(child_frame_id=child)
    message.header.frame_id, message.transform.translation.x = "map", x
    return message


@pytest.fixture
def bag(tmp_path):
    lost = PoseStamped()
    lost.pose.position.x = float("nan")
    status = [DiagnosticStatus(level=b"\2", name=name, message="no, nothing") for name in ("link", "camera")]
    messages = [("/drone/odom", START + n * SECOND + 1, odometry(n)) for n in range(3)]
    messages += [
        ("/pose", START, PoseStamped()),
        ("/pose", START + SECOND, lost),
        ("/tf", START, TFMessage()),
        ("/tf", START, TFMessage(transforms=[transform("odom", 1.0), transform("../pad", 2.0)])),
        ("/diagnostics", START, DiagnosticArray(status=status)),
        ("/image", START, Image(height=1, width=1, step=3, encoding="rgb8", data=b"abc")),
        ("/mode", START, String(data='two\nlines, "quoted"')),
        ("/mode", START, Imu()),
    ]
    return write_bag(tmp_path / "bag", sorted(messages, key=lambda message: message[1]))


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_each_topic_is_a_table_with_a_line_of_names(bag, capsys):
    assert main(["export", str(bag)]) == 0
    tables = {path.name: rows(path) for path in (bag / "csv").iterdir()}
    assert set(tables) == {
        *("drone.odom.csv", "pose.csv", "tf.csv", "diagnostics.csv"),
        *("mode.std_msgs.msg.String.csv", "mode.sensor_msgs.msg.Imu.csv"),
    }
    assert f"{bag}/csv/drone.odom.csv: 3 rows" in capsys.readouterr().out
    last = tables["drone.odom.csv"][-1]
    assert (last["time"], last["header.stamp"]) == ("1700000002.000000001", "1700000000.000000002")
    assert (last["header.frame_id"], last["pose.pose.position.x"]) == ("odom", "0.2")
    assert [last[f"pose.covariance[{i}]"] for i in (0, 35)] == ["0.0", "0.25"]
    assert [(row["child_frame_id"], row["transform.translation.x"]) for row in tables["tf.csv"]] == [
        ("odom", "1.0"),
        ("../pad", "2.0"),
    ]
    assert [list(row.values()) for row in tables["diagnostics.csv"]] == [
        [f"{START // SECOND}.000000000", "2", name, "no, nothing", ""] for name in ("link", "camera")
    ]
    assert tables["mode.std_msgs.msg.String.csv"][0]["data"] == 'two\nlines, "quoted"'


def test_lists_have_columns_for_the_longest_of_all_messages(tmp_path, capsys):
    lengths = {"/shrinks": (3, 1), "/grows": (0, 1, 3), "/long": (0, 36), "/too_long": (1, 37)}
    messages = [
        (topic, START + index, Float64MultiArray(data=[0.5] * length))
        for topic, sizes in lengths.items()
        for index, length in enumerate(sizes)
    ]
    messages += [("/joints", START, JointState()), ("/joints", START + 1, JointState(name=["left"], position=[1.5]))]
    bag = write_bag(tmp_path / "bag", sorted(messages, key=lambda message: message[1]))
    assert main(["export", str(bag)]) == 0
    for topic, sizes in lengths.items():
        found = [[row[name] for name in row if name.startswith("data[")] for row in rows(bag / f"csv{topic}.csv")]
        wanted = [0 if topic == "/too_long" else size for size in sizes]
        assert [row.count("0.5") for row in found] == wanted, topic
    assert [(row["name[0]"], row["position[0]"]) for row in rows(bag / "csv/joints.csv")] == [("", ""), ("left", "1.5")]
    assert "/too_long: data is left out" in capsys.readouterr().err


def test_failures_are_reported_in_a_sentence(tmp_path, capsys):
    assert main(["export", str(tmp_path / "absent")]) == 1
    assert "does not exist" in capsys.readouterr().err
    bag = write_bag(tmp_path / "bag", [("/image", START, Image())])
    assert main(["export", str(bag)]) == 1
    assert "has nothing that fits into a table" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert main(["export", str(bag), "-o", str(tmp_path / "file")]) == 1
    assert f"'{tmp_path / 'file'}' can't be written: File exists." in capsys.readouterr().err
