# SPDX-License-Identifier: Apache-2.0
"""telemetry_bridge as a process: images over UDP, and documents as text on topics."""

import itertools
import json
import signal
import time

from diagnostic_msgs.msg import DiagnosticArray
from diagnostics import values_of
from processes import Process
from ros_session import repeating, wait_until
from sensor_msgs.msg import CameraInfo, CompressedImage, Image, Imu
from std_msgs.msg import String
from telemetry_documents import HOVER, Clock, drone
from telemetry_peer import jpeg, send_until, start_with_peer

from drone_bridge.msg import CommandAxes
from drone_bridge.telemetry.session.controller import PROVEN_S

PICTURE = jpeg()


def test_jpegs_are_decoded_only_if_subscribed_and_bad_ones_skipped(ros):
    process, peer = start_with_peer()
    clock = Clock()
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    compressed = ros.subscribe(CompressedImage, "camera/image_raw/compressed")
    infos = ros.subscribe(CameraInfo, "camera/camera_info")

    def count(name):
        return int(values_of(reports.wait())[name])

    def send(picture=PICTURE):
        peer.send(drone(picture, timestamp=clock.next()))

    with process:
        send_until(send, lambda: len(compressed) > 20 and len(infos) > 20, "compressed images")
        wait_until(lambda: count("images") > 20, "a report")
        assert count("images_decoded") == 0
        raw = ros.subscribe(Image, "camera/image_raw")
        send_until(send, lambda: len(raw) > 3, "decoded images for whoever comes late")
        wait_until(lambda: count("images_decoded") > 3, "a report of them")
        damaged = PICTURE[: PICTURE.index(b"\xff\xda") + 20]
        compressed.clear()
        send_until(
            lambda: send(damaged),
            lambda: len(compressed) and bytes(compressed.wait().data) == damaged,
            "the damaged one as it is",
        )
        wait_until(lambda: count("undecodable_images"), "a report of it")
        assert process.stop() == 0
    peer.close()


def test_documents_come_and_go_by_topics_and_a_signal_leaves_a_hover_there(ros):
    telemetry = ros.publisher(String, "/drone/telemetry", 10, subscribers=0)
    commands = ros.subscribe(String, "/drone/command")
    clock = Clock()
    image = PICTURE + bytes(300_000)  # larger than a datagram; the decoder ignores data after the picture
    imus, images = ros.subscribe(Imu, "imu/data"), ros.subscribe(CompressedImage, "camera/image_raw/compressed")

    def send():
        telemetry.publish(String(data=json.dumps(drone(image, timestamp=clock.next()))))

    with Process.node("telemetry_bridge", transport="topic", stamp_source="wire") as process:
        assert json.loads(commands.wait().data) == HOVER  # before any document
        send_until(send, lambda: len(imus) and len(images), "telemetry")
        assert imus.wait().header.stamp.sec >= 100
        assert len(images.wait().data) == len(image)
        axes = ros.publisher(CommandAxes, "cmd_axes")
        with repeating(lambda _: axes.publish(CommandAxes(thrust=0.5)), 0.01):
            commands.wait(lambda message: json.loads(message.data)["thrust"] == 0.5)
            commands.clear()
            assert process.stop() == 0
    last = None
    while last != HOVER or len(commands):
        last = json.loads(commands.wait().data)


def test_a_flying_drone_whose_telemetry_has_ceased_is_landed_over_udp(ros):
    limits = {"max_height": 50.0, "odometry_timeout": 0.2, "land_without_odometry": 0.3}
    process, peer = start_with_peer(telemetry_timeout=0.2, **{f"limits.{name}": limits[name] for name in limits})
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    clock, started_s = Clock(), time.monotonic()
    speeds = itertools.cycle((0.49, 0.51))  # the same report is none if the command has changed

    def send():
        peer.send(drone(timestamp=clock.next(), velocity={"x": next(speeds), "y": 0.0, "z": 0.0}))

    with process:
        send_until(send, lambda: time.monotonic() - started_s > PROVEN_S + 0.5, "telemetry for long enough")
        wait_until(lambda: any(command["thrust"] < 0.0 for command in peer.commands), "a command to sink")
        reports.wait(lambda report: any("it lands by itself" in status.message for status in report.status))
        send_until(send, lambda: peer.commands[-1]["pitch"] != 0.0, "a command by its feedback")
        assert process.stop() == 0
    peer.close()


def test_a_stall_of_the_bridge_is_no_reason_to_land(ros):
    limits = {"max_height": 50.0, "odometry_timeout": 0.2, "land_without_odometry": 0.2}
    process, peer = start_with_peer(**{f"limits.{name}": limits[name] for name in limits})
    clock = Clock()
    still = {"velocity": {"x": 0.0, "y": 0.0, "z": 0.0}, "altimeter__vertical_velocity": 0.0}

    def send():
        peer.send(drone(timestamp=clock.next(), **still))

    with process, repeating(lambda _: send(), 0.04):
        wait_until(lambda: len(peer.commands) > 50, "commands")
        for _ in range(3):
            process.send(signal.SIGSTOP)
            wait_until(process.is_stopped, "the process to stand still")
            time.sleep(1.0)
            before = len(peer.commands)
            process.send(signal.SIGCONT)
            wait_until(lambda before=before: len(peer.commands) > before + 20, "commands after the stall")
        assert [command for command in peer.commands if command["thrust"] < -0.01] == []
        assert process.stop() == 0
    peer.close()
