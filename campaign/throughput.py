# SPDX-License-Identifier: Apache-2.0
"""Throughput and latency: fast topics among hundreds of others, responses in pieces, playback of a bag."""

import contextlib
import os
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from processes import Process
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_session import RosSession, wait_until
from rosbags.highlevel import AnyReader
from std_msgs.msg import Bool, Int32, String
from step import OK
from web_viewer import Viewer, web_bridge
from written_bags import write_bag

from drone_bridge.net.connector import wait_readable
from drone_bridge.net.link_loop import ReceivedData
from drone_bridge.net.tcp_connection import TcpConnection
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.bridge.node import OPTIONS

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
SECONDS = {True: 2.0, False: 30.0}  # duration of each fast topic, by whether it is the short form
BETWEEN_S = 0.05  # period of a bag's messages
STEPS = 200  # of a testbed
ANSWERS = 50
TIMEOUT_S = 5.0


def publish_fast(publisher: Any, rate_hz: float, count: int) -> None:
    """Publish numbers at a rate."""
    began_s = time.monotonic()
    for number in range(count):
        publisher.publish(String(data=str(number)))
        time.sleep(max(0.0, began_s + number / rate_hz - time.monotonic()))


def page_beside_hundreds(session: Any, folder: Path, *, short: bool) -> str:
    """Subscribe to 300 topics of the page and to one of 250 Hz."""
    count = round(250 * SECONDS[short])
    others = [session.node.create_publisher(Bool, f"/robot{number}/connected", LATCHED) for number in range(300)]
    fast = session.node.create_publisher(String, "/fast", QoSProfile(depth=count))
    with web_bridge() as process, Viewer(process.address) as viewer:
        for topic in ("/fast", *(other.topic for other in others)):
            viewer.subscribe(topic)
        wait_until(lambda: all(each.get_subscription_count() for each in (fast, *others)), "subscriptions")
        fast.publish(String(data="begin"))
        viewer.next_of("/fast")  # all of them exist
        publish_fast(fast, 250.0, count)
        last = str(count - 1).encode()
        viewer.wait_for(lambda: any(last in data for data in viewer.payloads("/fast")[-1:]), "the last message")
        arrived = len(viewer.payloads("/fast"))
    return f"the page {100 * arrived / count:.1f} % of 250 Hz"


def recorder_beside_hundreds(session: Any, folder: Path, *, short: bool) -> str:
    """Record 500 topics and one of 500 Hz."""
    count = round(500 * SECONDS[short])
    others = [session.node.create_publisher(Bool, f"/other{number}/connected", LATCHED) for number in range(500)]
    for other in others:
        other.publish(Bool())
    fast = session.node.create_publisher(String, "/fast", QoSProfile(depth=count))
    bag = folder / "flight"
    with Process.node("recorder", bag=bag) as recorder:
        wait_until(lambda: all(each.get_subscription_count() for each in (fast, *others)), "subscriptions")
        before_s, began_s = cpu_s(recorder.pid), time.monotonic()
        publish_fast(fast, 500.0, count)
        share = (cpu_s(recorder.pid) - before_s) / (time.monotonic() - began_s)
    with AnyReader([bag]) as reader:
        kept = sum(connection.msgcount for connection in reader.connections if connection.topic == "/fast")
    return f"the recorder {100 * kept / count:.1f} % of 500 Hz for {100 * share:.0f} % of a core"


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process, s."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def answers_in_pieces(session: Any, folder: Path, *, short: bool) -> str:
    """Query a simulator that sends each response in two pieces with Nagle's algorithm, like the CUAUV server."""
    taken_s = list[float]()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.create_connection(listener.getsockname())
        theirs, _ = listener.accept()

    def answer() -> None:
        with contextlib.suppress(OSError):
            for _ in range(ANSWERS):
                theirs.recv(4096)
                theirs.send(b"\3\0\0\0\x08")
                theirs.send(b"\0\0\0\1\0\0\0\0")

    thread = threading.Thread(target=answer)
    thread.start()
    stream, connection = TcpConnection(ours, OPTIONS), sim.ClientConnection()
    with theirs, contextlib.closing(stream):
        for _ in range(ANSWERS):
            began_s = time.monotonic()
            stream.flush(connection.send(sim.ListEntities()))
            while connection.outstanding:
                wait_readable([stream], TIMEOUT_S)
                if received := stream.read():
                    assert isinstance(received, ReceivedData)
                    connection.receive_data(received.data)
                    list(connection.events())
            taken_s.append(time.monotonic() - began_s)
        thread.join()
    return f"a response in two pieces {1000 * statistics.median(taken_s):.1f} ms"


def steps_by_default_sockets(session: Any, folder: Path, *, short: bool) -> str:
    """Step a testbed with default socket options: without immediate acknowledgements, a step takes 40 ms."""
    options = ("--port", 0, "--default-sockets", "--fast", "--once", "--duration", STEPS / 60, "--wind", "0 0 0")
    with Process(sys.executable, "-m", "drone_bridge.testbed.emulator", *options) as testbed:
        port = testbed.wait_for_line(r"listening on 127\.0\.0\.1:(\d+)")[1]
        with Process.node("testbed_bridge", port=port, attitude_layout="pitch_yaw"):
            wall_s = float(testbed.wait_for_line(rf"ended: {STEPS} steps, .*, (\d+\.\d+) wall s")[1])
    return f"a step by default sockets {1000 * wall_s / STEPS:.1f} ms"


def lateness_of_play(session: Any, folder: Path, *, short: bool) -> str:
    """Play a bag back, and compare the arrival times of its messages."""
    count = round(SECONDS[short] / BETWEEN_S)
    messages = [("/number", 10**18 + round(1e9 * BETWEEN_S * n), Int32(data=n)) for n in range(count)]
    bag, came_s = write_bag(folder / "bag", messages), dict[int, float]()

    def note(message: Any) -> None:
        came_s[message.data] = time.monotonic()

    session.node.create_subscription(Int32, "/number", note, count)
    with Process("drone-bridge", "play", bag, "--delay", 3) as player:
        player.wait()
    wait_until(lambda: count - 1 in came_s, "the last message")
    origins_s = sorted(at_s - BETWEEN_S * number for number, at_s in came_s.items())
    late_s = [each - origins_s[0] for each in origins_s]
    return f"played {1000 * statistics.median(late_s):.1f} ms late, {1000 * late_s[-1]:.0f} ms at most"


def main(short: bool) -> int:
    """Measure all figures in sequence."""
    measurements: Sequence[Callable[..., str]] = (
        page_beside_hundreds,
        recorder_beside_hundreds,
        answers_in_pieces,
        steps_by_default_sockets,
        lateness_of_play,
    )
    figures = []
    for measure in measurements:
        with tempfile.TemporaryDirectory() as folder, contextlib.closing(RosSession()) as session:
            figures.append(measure(session, Path(folder), short=short))
            print(figures[-1], flush=True)
    print(", ".join(figures))
    return OK
