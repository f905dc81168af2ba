# SPDX-License-Identifier: Apache-2.0
"""telemetry_bridge over UDP when something goes wrong, and how it leaves the drone behind."""

import itertools
import random

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from diagnostics import values_of
from ros_session import wait_until
from sensor_msgs.msg import CompressedImage, Image, Imu
from telemetry_documents import HOVER, Clock, drone, without
from telemetry_peer import TelemetryPeer, jpeg, send_until, send_until_reported, start_with_peer

from drone_bridge.msg import CommandAxes

PICTURE = jpeg()


class Running:
    """A bridge, and a drone that has been heard."""

    def __init__(self, **parameters):
        self.process, self.peer = start_with_peer(stamp_source="wire", **parameters)
        self.clock = Clock()
        self.send()
        self.peer.wait()

    def send(self, **values):
        self.peer.send(drone(timestamp=self.clock.next(), **values))


@pytest.fixture
def running():
    """A bridge to which a drone is never silent for too long, and a command never too old."""
    with_peer = Running(telemetry_timeout=60.0, takeover_timeout=1.0, command_timeout=60.0)
    with with_peer.process:
        yield with_peer
    with_peer.peer.close()


@pytest.fixture
def forgetful(ros, running):
    """The same, but after a second the drone is silent."""
    assert ros.set_parameters("telemetry_bridge", telemetry_timeout=1.0)[0].successful
    return running


@pytest.fixture
def reports(ros):
    return ros.subscribe(DiagnosticArray, "/diagnostics")


def stamps(inbox):
    """Return the stamps of all messages that have come, in s, oldest first."""
    found = []
    while len(inbox):
        stamp = inbox.wait().header.stamp
        found.append(round(stamp.sec + stamp.nanosec * 1e-9, 6))
    return found


def fly(ros, running):
    """Command something that is not hover, to a drone that talks, until the wire says it; return the publisher."""
    publisher = ros.publisher(CommandAxes, "cmd_axes")
    message = CommandAxes(thrust=0.5)
    start = len(running.peer.commands)
    send_until(
        lambda: running.send() or publisher.publish(message),
        lambda: any(command["thrust"] == 0.5 for command in running.peer.commands[start:]),
        "the command on the wire",
    )
    return publisher


# Documents that are refused.


def test_an_image_that_cannot_be_decoded_costs_only_itself(ros, running, reports):
    broken = PICTURE[: PICTURE.index(b"\xff\xda") + 20]
    raw = ros.subscribe(Image, "camera/image_raw")
    compressed = ros.subscribe(CompressedImage, "camera/image_raw/compressed")
    send_until(lambda: running.send(image=PICTURE), lambda: len(raw) and len(compressed), "images")
    compressed.clear()
    send_until(lambda: running.send(image=broken), lambda: len(compressed), "the broken one as it is")
    running.process.wait_for_line("An image is cut short before its end; the rest of its document was published")
    reports.wait(lambda report: int(values_of(report)["undecodable images"]) > 0)


# Loss and reordering.


def test_lost_and_overtaken_documents(ros, running, reports):
    imus = ros.subscribe(Imu, "imu/data", 1000)
    send_until(running.send, lambda: len(imus), "telemetry")
    chance = random.Random(2)
    sent = [running.clock.next() for _ in range(200)]
    arriving = [timestamp for timestamp in sent if chance.random() > 0.2]
    for index in range(0, len(arriving) - 1, 7):
        arriving[index], arriving[index + 1] = arriving[index + 1], arriving[index]
    in_order = [
        time for time, newest in zip(arriving, itertools.accumulate(arriving, max), strict=True) if time == newest
    ]
    imus.clear()
    for number, timestamp in enumerate(arriving):
        running.peer.send(drone(timestamp=timestamp))
        if number % 10 == 0:  # no faster than the bridge can follow
            running.peer.wait_for_next()

    found = []

    def all_have_come():  # among what had been on its way before
        found.extend(time for time in stamps(imus) if time >= sent[0])
        return len(found) >= len(in_order)

    wait_until(all_have_come, "all that was in order")
    assert found == in_order
    late = len(arriving) - len(in_order)
    assert late > 10
    reports.wait(lambda report: values_of(report)["late documents"] == str(late))


def test_a_restarted_drone_is_followed(ros, running):
    imus = ros.subscribe(Imu, "imu/data")
    send_until(running.send, lambda: len(imus), "telemetry")
    running.clock.time = 0.0
    seen = []
    send_until(running.send, lambda: seen.extend(stamps(imus)) or min(seen) < 1.0, "telemetry with earlier stamps")
    running.peer.wait_for_next()


def test_after_silence_no_timestamp_is_late(ros):
    running = Running(telemetry_timeout=0.2)
    try:
        with running.process:
            imus = ros.subscribe(Imu, "imu/data")
            send_until(running.send, lambda: len(imus), "telemetry")
            running.process.wait_for_line("No telemetry was received for 0.2 s")
            earlier = round(running.clock.time - 0.5, 6)  # between two that were sent
            # Again and again: that was perhaps said of a pause before, and what is late does not end the silence.
            send_until(lambda: running.peer.send(drone(timestamp=earlier)), lambda: earlier in stamps(imus), "it")
    finally:
        running.peer.close()


def test_telemetry_without_timestamps_is_stamped_with_the_time_it_came(ros, running):
    imus = ros.subscribe(Imu, "imu/data")
    send_until(lambda: running.peer.send(without(drone(), "timestamp")), lambda: len(imus), "telemetry")
    assert stamps(imus)[-1] > 1e9


# Peers.


def test_answers_stop_when_documents_stop_and_the_last_of_them_hover(ros, forgetful, reports):
    """Whoever a forged datagram names as its source must not be sent commands forever."""
    running = forgetful
    publisher = fly(ros, running)
    silent = reports.wait(lambda report: report.status[0].message.startswith("no telemetry"))
    assert silent.status[0].level == DiagnosticStatus.WARN
    running.process.wait_for_line(
        r"No telemetry was received for 1 s\. The drone was commanded to hover, and gets no commands"
    )
    before = int(values_of(silent)["undelivered commands"])
    count = len(running.peer.commands)
    assert running.peer.commands[-3:] == [HOVER] * 3

    def command():
        publisher.publish(CommandAxes())
        return len(reports) and int(values_of(reports.wait())["undelivered commands"]) > before + 3

    wait_until(command, "commands that reach nobody", period_s=0.05)  # which takes a report, and so a second
    assert len(running.peer.commands) == count
    assert running.process.count_lines("No telemetry") == 1
    send_until_reported(running.send, reports, lambda report: report.status[0].level == DiagnosticStatus.OK)
    assert len(running.peer.commands) > count


def test_answers_per_document_are_limited():
    running = Running(telemetry_timeout=0.4)
    with running.process:
        running.process.wait_for_line("No telemetry was received")
        assert len(running.peer.commands) <= 25 * 0.4 + 5
    running.peer.close()


def test_a_silent_drone_keeps_its_place_until_the_takeover_timeout(ros, forgetful):
    running = forgetful
    ros.set_parameters("telemetry_bridge", takeover_timeout=3000.0)
    running.process.wait_for_line("No telemetry was received")
    other = TelemetryPeer(running.peer.bridge_port)
    try:
        other.send(drone())
        running.process.wait_for_line(
            rf"127\.0\.0\.1:{other.port} was refused: 127\.0\.0\.1:{running.peer.port} keeps its place for 3000 s"
        )
        send_until(running.send, lambda: running.peer.commands[-1:], "the first drone's answers")
        assert other.commands == []
    finally:
        other.close()


@pytest.mark.parametrize(("allowed", "is_taken"), [("['192.0.2.0/24']", False), ("['192.0.2.7', '127.0.0.0/8']", True)])
def test_documents_of_peers_that_are_not_allowed_are_ignored(allowed, is_taken):
    process, peer = start_with_peer(allowed_peers=allowed)
    with process:
        if is_taken:
            send_until(lambda: peer.send(drone()), lambda: peer.commands, "commands")
        else:
            peer.send(drone())
            process.wait_for_line(rf"127\.0\.0\.1:{peer.port} was refused: it is not in allowed_peers\.")
            assert peer.commands == []
    peer.close()


def test_a_drone_that_comes_back_from_another_port_is_commanded_there(ros, forgetful):
    running = forgetful
    fly(ros, running)
    running.peer.close()
    again = TelemetryPeer(running.peer.bridge_port)
    imus = ros.subscribe(Imu, "imu/data")
    clock = Clock(start=0.0)
    try:
        send_until(lambda: again.send(drone(timestamp=clock.next())), lambda: again.commands, "commands")
        running.process.wait_for_line(rf"127\.0\.0\.1:{again.port} takes the place of 127\.0\.0\.1:{running.peer.port}")
        send_until(lambda: again.send(drone(timestamp=clock.next())), lambda: len(imus), "telemetry")
        assert stamps(imus)[-1] < 10.0
    finally:
        again.close()


def test_a_command_to_one_drone_is_not_for_the_one_that_takes_its_place(ros):
    running = Running(command_timeout=60.0, takeover_timeout=1.0)
    again = TelemetryPeer(running.peer.bridge_port)
    try:
        with running.process:
            fly(ros, running)
            running.process.wait_for_line("No telemetry was received")
            ros.set_parameters("telemetry_bridge", command_timeout=60.0)  # by then no command is on its way any more
            send_until(lambda: again.send(drone()), lambda: again.commands, "commands")
            assert again.commands[0] == HOVER
    finally:
        again.close()
        running.peer.close()


# How the drone is left.
