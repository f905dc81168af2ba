# SPDX-License-Identifier: Apache-2.0
"""A peer that hangs looks connected to the system; diagnostics say otherwise, and say so when it comes back."""

import signal

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from diagnostics import values_of
from geometry_msgs.msg import Twist
from processes import Process, when_listening
from ros_session import wait_until
from testbed_peer import TestbedPeer, bridge

SILENCE_S = 0.8  # longer than what any of the emulators leaves between two words
UPRIGHT = [1.0, 0.0, 0.0, 0.0]  # how the vehicle is built, as its bridge warns of what it has to guess


def emulator(name, *arguments):
    """Start an emulator that listens, and return it with its port."""
    child = Process.module(f"drone_bridge.{name}.emulator", "--port", "0", *arguments)
    when_listening(child)
    return child


def wait_for_status(reports, wanted):
    """Wait for a report whose status is wanted, and return it."""
    return reports.wait(lambda report: wanted(report.status[0])).status[0]


def is_ok(status):
    return status.level == DiagnosticStatus.OK


def is_silent(status):
    return status.level == DiagnosticStatus.WARN and "silent for" in status.message


def test_a_paused_simulator_is_asked_for_a_sign_of_life(ros):
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    # A warning comes before the bridge gives the connection up and opens another one, which the system answers.
    with (
        emulator("simulator") as peer,
        Process.node("simulator_bridge", port=peer.port, silence_warning=1.5, body_to_model=UPRIGHT) as node,
    ):
        wait_for_status(reports, is_ok)
        peer.send(signal.SIGSTOP)
        try:
            wait_for_status(reports, is_silent)
            node.wait_for_line(rf"127\.0\.0\.1:{peer.port} is connected but has been silent for \d+ s\.")
        finally:
            peer.send(signal.SIGCONT)
        status = wait_for_status(reports, is_ok)
        assert status.hardware_id == f"simulator 127.0.0.1:{peer.port}"


def test_a_silence_is_counted_and_logged_although_nobody_subscribes_to_diagnostics(ros):
    with (
        emulator("testbed", "--width", "32", "--height", "32") as peer,
        Process.node("testbed_bridge", port=peer.port, silence_warning=SILENCE_S) as node,
    ):
        node.wait_for_line(rf"Connected to 127\.0\.0\.1:{peer.port}\.")
        peer.send(signal.SIGSTOP)
        try:
            node.wait_for_line(r"has been silent for \d+ s\.")
        finally:
            peer.send(signal.SIGCONT)
        node.wait_for_line("is heard again")
        reports = ros.subscribe(DiagnosticArray, "/diagnostics")  # to which another test's bridge may still report
        first = reports.wait(lambda report: report.status[0].hardware_id == f"testbed 127.0.0.1:{peer.port}")
    assert values_of(first)["silences"] == "1"
    assert first.status[0].message == "connected"  # the count did not grow in this report's own second


def test_commands_that_reach_no_vehicle_are_counted_and_warned_of(ros):
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    peer = TestbedPeer()
    commands = ros.publisher(Twist, "cmd_vel", subscribers=0)

    def is_counted(report):
        commands.publish(Twist())
        return int(values_of(report)["undelivered_commands"]) > 1

    with bridge(peer, silence_warning=2.0, autostart=True) as node:
        peer.open().exchange()
        node.wait_for_line("attitude_layout is taken to be")  # until its first frame it is silent as well
        wait_until(commands.get_subscription_count, "the bridge")
        line = r"Commands on cmd_vel reach no vehicle: 127\.0\.0\.1:\d+ has been silent for \d+ s\."
        wait_until(lambda: commands.publish(Twist()) or node.count_lines(line), "the warning", period_s=0.05)
        reports.wait(is_counted)
        assert node.count_lines(line) == 1  # however often they come
        peer.close()
    with bridge(peer) as node:
        wait_until(commands.get_subscription_count, "the bridge")
        reports.wait(is_counted)
        line = r"Commands on cmd_vel reach no vehicle: no peer is connected\."
        wait_until(lambda: commands.publish(Twist()) or node.count_lines(line), "the warning", period_s=0.05)
