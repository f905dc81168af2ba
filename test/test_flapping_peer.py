# SPDX-License-Identifier: Apache-2.0
"""Peers that come, say a little and go, again and again: what that costs, and what the log and the counts say of it."""

import contextlib
import os
import re
import socket
import struct
import threading
import time
from dataclasses import dataclass

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from diagnostics import values_of
from dronegui_peer import DroneGuiPeer
from processes import TIMEOUT_S, Process
from ros_session import wait_until
from testbed_peer import CONSTANTS, TestbedPeer

from drone_bridge.net.connector import FIRST_DELAY_S, JITTER
from drone_bridge.ros.diagnostics import BURST, LINES_PER_S
from drone_bridge.testbed.codec import TestbedConnection

ROUNDS = 100
CONNECTIONS = BURST  # as many as are logged each
#: What is said at the start, and once a second in diagnostics, apart from what is said of the peer.
OTHER_LINES = 6
GARBAGE = b"\xff" * 48


@dataclass(frozen=True)
class Use:
    """What a process occupies."""

    descriptors: int
    threads: int


def use_of(process):
    return Use(*(len(os.listdir(f"/proc/{process.pid}/{each}")) for each in ("fd", "task")))


def allowed_lines(kinds, seconds):
    """Return how many lines may be logged of so many kinds: warnings, information, and each condition that goes on."""
    return OTHER_LINES + kinds * (BURST + LINES_PER_S * seconds)


def say_and_go(port, said, resets):
    """Connect, say something and leave; return when the bridge has left as well."""
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as client:
        client.sendall(said)
        if resets:  # as a peer that was killed
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        client.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            while client.recv(4096):
                pass


def test_a_listening_bridge_survives_a_flood_of_short_connections(ros):
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    opening = TestbedConnection().send(CONSTANTS)
    sayings = (b"", opening[:20], opening + b"\0" * 30, GARBAGE)
    began_s = time.monotonic()
    with Process.node("testbed_bridge", role="listen", port=0) as process:
        port = int(process.wait_for_line(r"Waiting for a peer on 127\.0\.0\.1:(\d+)")[1])
        used = []
        for _ in range(3):  # the first one warms up
            for number in range(ROUNDS):
                say_and_go(port, sayings[number % len(sayings)], resets=number % 5 == 4)
            used.append(use_of(process))
        # What the last connection had may still be on its way out.
        wait_until(lambda: use_of(process).descriptors <= used[0].descriptors + 2, "the descriptors of those who went")
        wait_until(lambda: use_of(process).threads <= used[0].threads + 2, "the threads of those who went")
        peer = TestbedPeer(connect_to=port)
        try:
            peer.open().exchange()  # it is served at once, with no delay left over
            report = reports.wait(
                lambda report: report.status[0].level == DiagnosticStatus.OK or peer.exchange() is None
            )
        finally:
            peer.close()
        # Those that were reset may have gone again before they were served.
        counts = {name: int(values_of(report)[name]) for name in ("connections", "lost connections", "rejected input")}
        assert 3 * ROUNDS * 4 // 5 < counts["connections"] <= 3 * ROUNDS + 1
        assert counts["rejected input"] > 3 * ROUNDS // 5  # garbage, and what was cut short
        assert counts["lost connections"] + counts["rejected input"] < counts["connections"]
        assert len(process.lines) <= allowed_lines(2, time.monotonic() - began_s), process.output
        process.wait_for_line("lines suppressed")


class Flapper:
    """Accepts, says a little and closes."""

    def __init__(self, said):
        self._said = said
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.accepted = 0
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self):
        with contextlib.suppress(OSError):  # it was shut down
            while True:
                connection, _ = self._listener.accept()
                self.accepted += 1
                with connection, contextlib.suppress(OSError):
                    connection.sendall(self._said)

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()


def test_connecting_bridges_back_off_from_a_flapping_peer(ros):
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    sayings = {"testbed": b"\0" * 20, "robot": b"\0" * 3, "simulator": b"\xff" * 16}
    began_s = time.monotonic()
    with contextlib.ExitStack() as stack:
        flappers, processes = {}, {}
        for name, said in sayings.items():
            flappers[name] = Flapper(said)
            stack.callback(flappers[name].close)
            processes[name] = stack.enter_context(Process.node(f"{name}_bridge", port=flappers[name].port))
        # Delays of 0.2 s and of those doubled, less the jitter; a busy machine only makes them longer.
        shortest_s = FIRST_DELAY_S * (1 + (1 - JITTER) * sum(2**n for n in range(1, CONNECTIONS - 1)))
        for name, process in processes.items():
            process.wait_for_count("Connected to", CONNECTIONS)
            lines = [line for line in process.output.splitlines() if "Connected to" in line]
            at_s = [float(re.search(r"\[(\d+\.\d+)\]", line)[1]) for line in lines[:CONNECTIONS]]
            assert at_s[-1] - at_s[0] > shortest_s, f"{name}: {at_s}"

        def is_counted(report, name):
            status, values = report.status[0], values_of(report)
            return f"{name}_bridge" in status.name and int(values["connections"]) >= CONNECTIONS

        for name in sayings:
            report = reports.wait(lambda report, name=name: is_counted(report, name))
            assert int(values_of(report)["connections"]) <= flappers[name].accepted
            assert report.status[0].level > DiagnosticStatus.OK
            reports.clear()
        for process in processes.values():
            assert len(process.lines) <= allowed_lines(2, time.monotonic() - began_s), process.output


def test_a_gui_that_comes_and_goes_does_not_fill_the_log(ros):
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    peer = DroneGuiPeer()
    port, is_there = peer.port, True
    began_s = time.monotonic()

    def undelivered(report):
        return int(values_of(report)["undelivered packets"])

    def come_or_go():
        nonlocal peer, is_there
        if is_there:
            peer.wait()
            peer.close()
        else:
            peer = DroneGuiPeer(port)
        is_there = not is_there
        return len(reports) and undelivered(reports.wait()) > ROUNDS

    with Process.node("dronegui_bridge", port=port, receive_navdata=False, rate=100.0) as process:
        try:
            wait_until(come_or_go, "packets that nobody takes", period_s=0.03)
        finally:
            peer.close()
        process.wait_for_line("lines suppressed")
        assert len(process.lines) <= allowed_lines(1, time.monotonic() - began_s), process.output
