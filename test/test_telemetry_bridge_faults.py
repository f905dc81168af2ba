# SPDX-License-Identifier: Apache-2.0
"""telemetry_bridge over UDP when something goes wrong, and how it leaves the drone behind."""

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
