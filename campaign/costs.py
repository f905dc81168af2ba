# SPDX-License-Identifier: Apache-2.0
"""Memory and CPU costs of programs: flapping peers, large images, viewers that do not read, an idle launch."""

import array
import contextlib
import importlib
import os
import re
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from processes import TIMEOUT_S, Process, executable
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from ros_session import RosSession, wait_until
from sensor_msgs.msg import Image
from step import OK
from web_viewer import Viewer, web_bridge

from drone_bridge.testbed.codec import TestbedConnection

testbed = importlib.import_module("testbed_peer")  # from test/support; benchmark/ has a module of that name, too

BEST_EFFORT = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
MEBIBYTE = 2**20
GARBAGE = b"\xff" * 48
CONNECTIONS = 100  # per round
ROUNDS = {True: 3, False: 100}  # by whether it is the short form; the first one is the warm-up
IDLE_S = {True: 5.0, False: 60.0}
FLOOD_S = 2.0


def resident_mebibytes(pid: int, name: str = "VmRSS") -> float:
    """Return the resident memory of a process, or with VmHWM its maximum."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found, f"no {name} of {pid}"
    return int(found[1]) / 1024


def private_mebibytes(pid: int) -> float:
    """Return the private memory of a process, as shared memory belongs to DDS."""
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE") / MEBIBYTE


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process, s."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def flapping_peers(folder: Path, *, short: bool) -> str:
    """Connect to a listening bridge, send a little and disconnect, repeatedly."""
    opening = TestbedConnection().send(testbed.CONSTANTS)
    sayings, used = (b"", opening[:20], opening + b"\0" * 30, GARBAGE), list[float]()
    with Process.node("testbed_bridge", role="listen", port=0) as process:
        port = int(process.wait_for_line(r"Waiting for a peer on 127\.0\.0\.1:(\d+)")[1])
        for _ in range(ROUNDS[short]):
            for number in range(CONNECTIONS):
                with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as client:
                    client.sendall(sayings[number % len(sayings)])
                    if number % 5 == 4:  # like a peer that was killed
                        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        continue
                    client.shutdown(socket.SHUT_WR)
                    with contextlib.suppress(ConnectionResetError):
                        while client.recv(4096):
                            pass
            used.append(resident_mebibytes(process.pid))
    return f"{CONNECTIONS * (len(used) - 1)} short connections {used[-1] - used[0]:+.1f} MiB"


def large_images(folder: Path, *, short: bool) -> str:
    """Run a testbed with nearly the maximum image size, and then one with small images."""
    large = replace(testbed.CONSTANTS, width=4096, height=2730)
    with contextlib.closing(testbed.TestbedPeer()) as peer, Process.node("testbed_bridge", port=peer.port) as process:
        peer.open().exchange()
        before = resident_mebibytes(process.pid)
        peer.open(large).exchange(constants=large)
        during = resident_mebibytes(process.pid) - before
        peer.open().exchange()
        after = resident_mebibytes(process.pid) - before
    return f"images of 64 MiB {during:+.0f} MiB, {after:+.1f} MiB after them"


def is_published(publisher: Any, data: bytes) -> bool:
    """Publish, and return whether that worked: a writer may be overrun for a moment."""
    try:
        publisher.publish(data)
    except rclpy_implementation.RCLError:
        return False
    return True


def viewers_who_do_not_read(folder: Path, *, short: bool) -> str:
    """View raw images of 5.5 MiB on a page with eight viewers that do not read."""
    picture = Image(height=1200, width=1600, encoding="rgb8", step=4800, data=array.array("B", bytes(5760000)))
    data = serialize_message(picture)
    with contextlib.closing(RosSession()) as session, web_bridge() as process:
        publisher = session.node.create_publisher(Image, "/large/image_raw", BEST_EFFORT)
        with contextlib.ExitStack() as open_ones:

            def viewer(**options: object) -> Any:
                new = open_ones.enter_context(Viewer(process.address, **options))
                new.subscribe("/large/image_raw")
                return new

            def pass_on(count: int) -> None:
                for _ in range(count):
                    wait_until(lambda: is_published(publisher, data), "a writer that has room")
                    awake.next_of("/large/image_raw")

            awake = viewer()
            wait_until(lambda: publisher.get_subscription_count() == 1, "a subscription")
            pass_on(20)
            before = highest = private_mebibytes(process.pid)
            stopped = [viewer(max_queue=1) for _ in range(8)]
            for _ in range(10 if short else 100):
                pass_on(10)
                highest = max(highest, private_mebibytes(process.pid))
            for each in stopped:
                each.connection.socket.close()
            pass_on(10)
            after = private_mebibytes(process.pid)
    return f"8 viewers that do not read {highest - before:+.0f} MiB, {after - before:+.0f} MiB after them"


def launch_command(folder: Path, command: str) -> list[str]:
    """Return the command of a launch file with one program."""
    path = folder / "some.launch.xml"
    path.write_text(f"<launch><executable cmd='{command}' name='some'/></launch>")
    return [executable("drone-bridge"), "launch", str(path)]


def idle_launch(folder: Path, *, short: bool) -> str:
    """Run a launch file with an idle program."""
    with Process(*launch_command(folder, "sleep 1000")) as runner:
        runner.wait_for_line(r"some-1 started")
        time.sleep(1.0)
        before_s = cpu_s(runner.pid)
        time.sleep(IDLE_S[short])
        share = (cpu_s(runner.pid) - before_s) / IDLE_S[short]
        runner.stop(signal.SIGINT)
    return f"an idle launch {100 * share:.1f} % of a core"


def stalled_screen(folder: Path, *, short: bool) -> str:
    """Run a launch file with a program that floods a stalled screen."""
    command = launch_command(folder, "yes")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True) as runner:
        assert runner.stdout
        os.read(runner.stdout.fileno(), 10)
        time.sleep(FLOOD_S)
        # rusage would include this process, from which the child was forked
        most = resident_mebibytes(runner.pid, "VmHWM")
        runner.send_signal(signal.SIGINT)
        runner.wait(TIMEOUT_S)
    return f"a launch whose screen stalls {most:.0f} MiB"


def main(short: bool) -> int:
    """Measure all costs in sequence."""
    measurements: Sequence[Callable[..., str]] = (
        flapping_peers,
        large_images,
        viewers_who_do_not_read,
        idle_launch,
        stalled_screen,
    )
    figures = []
    for measure in measurements:
        with tempfile.TemporaryDirectory() as folder:
            figures.append(measure(Path(folder), short=short))
        print(figures[-1], flush=True)
    print(", ".join(figures))
    return OK
