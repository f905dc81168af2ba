# SPDX-License-Identifier: Apache-2.0
"""Many vehicles as processes: four of each kind, with controllers, recorder and page; their costs and losses.

All robots except the last are commanded at 20 Hz by numbered velocities, which appear in their bridges' wire logs.
There are no goals and no video: recording four AR.Drones' cameras would fill two cores. Environment variables:
MEASURE_EACH, another number of vehicles of each kind; MEASURE_SECONDS, the duration of the measurement.
"""

import contextlib
import itertools
import os
import re
import signal
import statistics
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from geometry_msgs.msg import TwistStamped
from ports import free_ports
from processes import Process, executable
from rclpy.serialization import deserialize_message
from ros_session import RosSession, wait_until
from rosbags.highlevel import AnyReader
from std_msgs.msg import Bool
from step import Verdict
from tf2_msgs.msg import TFMessage
from web_viewer import Viewer

from drone_bridge.kind import Side
from drone_bridge.robot.codec import FULL_SPEED, SkidSteerUpdate
from drone_bridge.tools.wire.decoding import DecodedMessage, Decoder
from drone_bridge.tools.wire.log_file import LogFile

EACH = {True: 1, False: 4}  # vehicles of each kind, by whether it is the short form
MEASURED_S = {True: 15.0, False: 60.0}
START_S = 240.0  # timeout for the start of 50 processes, on two busy cores
SETTLING_S = {True: 10.0, False: 30.0}  # until the last of them has discovered the others
COMMANDS_HZ = 20.0
FIRST_SPEED = 100  # on the wire, of the first command
NEUTRAL_S = 2.5  # after the last command, as elsewhere
END_S = 120.0
#: Launch files by kind, with the required ports and non-default arguments.
KINDS: Mapping[str, tuple[tuple[str, ...], Mapping[str, str]]] = {
    "testbed": (
        ("testbed_port",),
        {
            "attitude_layout": "pose",
            "testbed_rate": "10.0",
            "testbed_image_width": "160",
            "testbed_image_height": "120",
        },
    ),
    "dronegui": (("dronegui_port", "navdata_port"), {"video_port": "0"}),
    "robot": (("robot_port", "discovery_port"), {}),
    "telemetry": (("telemetry_port",), {"control": "true", "rover_pattern": "circular"}),
}


class Usage(NamedTuple):
    """CPU usage of a process so far."""

    cpu_s: float
    wakeups: int


def launch_file(folder: Path, each: int) -> Path:
    """Write the launch file for this many vehicles of each kind."""
    ports = iter(free_ports(each * sum(len(names) for names, _ in KINDS.values())))
    share = "$(find-pkg-share drone_bridge)/launch"
    includes = []
    for kind, (names, options) in KINDS.items():
        for vehicle in (f"{kind}{number}" for number in range(1, each + 1)):
            own = {"namespace": vehicle, "frame_prefix": f"{vehicle}/", **{name: next(ports) for name in names}}
            values = "".join(f'<arg name="{name}" value="{value}"/>' for name, value in {**own, **options}.items())
            includes.append(f'<group><include file="{share}/{kind}.launch.xml">{values}</include></group>')
    parameters = folder / "parameters.yaml"
    parameters.write_text(f"/**/robot_bridge:\n  ros__parameters:\n    wire_log: {folder}/wire\n")
    path = folder / "fleet.launch.xml"
    path.write_text(
        f'<launch><arg name="emulate" default="true"/><arg name="control" default="false"/>'
        f'<arg name="params_file" default="{parameters}"/><group>'
        f'<include file="{share}/parts/common.launch.xml"/><let name="models_around" value="false"/>'
        f'<let name="record" value="false"/><let name="view" value="false"/>{"".join(includes)}</group></launch>'
    )
    return path


def started(launch: Any) -> dict[str, int]:
    """Return the process IDs of the processes in a launch, by label."""
    return {match[1]: int(match[2]) for match in re.finditer(r"(\S+-\d+) started \(pid (\d+)\)", launch.output)}


def usage_of(pid: int) -> Usage:
    """Return the usage of a process: CPU time, and the number of waits of its threads."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        texts = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/status")]
        wakeups = sum(int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0]) for text in texts)
        return Usage((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), wakeups)
    return Usage(0.0, 0)


class Commander:
    """Commands robots with numbered speeds until `stop`, on its own thread."""

    def __init__(self, session: Any, robots: Iterable[str]) -> None:
        self._publishers = [
            session.node.create_publisher(TwistStamped, f"/{robot}/cmd_vel_stamped", 1) for robot in robots
        ]
        #: Time of publication, ns since 1970, by the speed on the wire.
        self.given_ns: dict[int, int] = {}
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        began_s = time.monotonic()
        for number in itertools.cycle(range(FIRST_SPEED, FULL_SPEED)):
            message = TwistStamped()
            message.twist.linear.x = number / FULL_SPEED  # the emulated robot's full speed is 1 m/s
            self.given_ns.setdefault(number, time.time_ns())
            for publisher in self._publishers:
                publisher.publish(message)
            if self._is_over.wait(max(0.0, began_s + len(self.given_ns) / COMMANDS_HZ - time.monotonic())):
                return

    def stop(self) -> int:
        """Stop commanding; return the time, ns since 1970."""
        self._is_over.set()
        self._thread.join()
        return time.time_ns()


def speeds_sent(robot: str, folder: Path) -> list[tuple[int, int]]:
    """Return the times, ns since 1970, and speeds that a robot's bridge has sent."""
    sent = []
    for path in folder.glob(f"wire/{robot}.robot_bridge-*.mcap"):
        with LogFile(path) as log:
            decoders: dict[int, Decoder] = {}
            for entry in log.entries():
                decoder = decoders.setdefault(entry.connection.number, Decoder(log.source, is_stream=True))
                for outcome in decoder.feed(entry):
                    if isinstance(outcome, DecodedMessage) and isinstance(outcome.meaning, SkidSteerUpdate):
                        assert outcome.sender is Side.OPERATOR
                        sent.append((entry.time_ns, outcome.meaning.left))
    return sent


def judge_robots(verdict: Verdict, folder: Path, each: int, given_ns: Mapping[int, int], stopped_ns: int) -> str:
    """Check when the robots were driven, and return the delay of commands on the wire."""
    late_s, missing = list[float](), 0
    for number in range(1, each + 1):
        robot, is_commanded = f"robot{number}", number < each or each == 1
        sent = speeds_sent(robot, folder)
        if not is_commanded:
            verdict.stopped(not any(speed for _, speed in sent), f"{robot} was driven without a command.")
            continue
        limit_ns = stopped_ns + round(1e9 * NEUTRAL_S)
        last = [speed for at_ns, speed in sent if at_ns <= limit_ns][-1:]
        verdict.stopped(last in ([], [0]), f"{robot} was not stopped {NEUTRAL_S} s after the last command.")
        verdict.stopped(not any(speed for at_ns, speed in sent if at_ns > limit_ns), f"{robot} was driven afterwards.")
        arrived_ns = {speed: at_ns for at_ns, speed in reversed(sent)}
        late_s += [(arrived_ns[speed] - at_ns) / 1e9 for speed, at_ns in given_ns.items() if speed in arrived_ns]
        missing += len(given_ns.keys() - arrived_ns.keys())
    if len(late_s) < 2:
        return "no command reached a robot"
    share = 100 * missing / (missing + len(late_s))
    p50_s, p99_s = statistics.median(late_s), statistics.quantiles(late_s, n=100)[98]
    return f"cmd_vel to wire p50 {1000 * p50_s:.0f} ms, p99 {1000 * p99_s:.0f} ms, {share:.1f} % replaced or lost"


def read_tf(bag: Path, window_ns: tuple[int, int]) -> tuple[int, dict[str, float]]:
    """Return the number of recorded messages of /tf in the window, and the longest gap by vehicle, s."""
    times_ns, count = defaultdict[str, list[int]](lambda: [window_ns[0]]), 0
    with AnyReader([bag]) as reader:
        connections = [each for each in reader.connections if each.topic == "/tf"]
        for _, time_ns, data in reader.messages(connections, *window_ns):
            count += 1
            vehicle = deserialize_message(data, TFMessage).transforms[0].child_frame_id.partition("/")[0]
            times_ns[vehicle].append(time_ns)
    gaps_s = {
        vehicle: max(after - before for before, after in itertools.pairwise([*times, window_ns[1]])) / 1e9
        for vehicle, times in times_ns.items()
    }
    return count, gaps_s


def flew(bag: Path) -> list[str]:
    """Return the drones of the GUI that took off."""
    with AnyReader([bag]) as reader:
        connections = [each for each in reader.connections if re.fullmatch(r"/dronegui\d+/flying", each.topic)]
        messages = reader.messages(connections)
        return [each.topic for each, _, data in messages if deserialize_message(data, Bool).data]


def by_kind(before: Mapping[str, Usage], after: Mapping[str, Usage], seconds: float) -> tuple[float, list[str]]:
    """Return the CPU time of all processes in % of a core, and a line for each kind."""
    kinds = defaultdict[str, list[tuple[float, float]]](list)
    for label in before:
        cpu_s, wakeups = (last - first for first, last in zip(before[label], after[label], strict=True))
        kinds[label.rpartition("-")[0]].append((100 * cpu_s / seconds, wakeups / seconds))
    lines = []
    for kind, used in sorted(kinds.items(), key=lambda item: -sum(cpu for cpu, _ in item[1])):
        cpu, wakeups = (statistics.mean(values) for values in zip(*used, strict=True))
        lines.append(f"{len(used):>3} {kind:<18} {cpu:5.1f} % of a core and {wakeups:5.0f} wake-ups a second each")
    return sum(cpu for used in kinds.values() for cpu, _ in used), lines


def main(short: bool) -> int:
    """Start them, measure, and stop them."""
    verdict = Verdict()
    each = int(os.environ.get("MEASURE_EACH", EACH[short]))
    seconds = float(os.environ.get("MEASURE_SECONDS", MEASURED_S[short]))
    with tempfile.TemporaryDirectory() as name, contextlib.closing(RosSession()) as session:
        folder = Path(name)
        bag = folder / "flight"
        arguments = ("record:=true", f"bag:={bag}", "view:=true", "view_port:=0")
        started_s = time.monotonic()
        launch = Process(executable("drone-bridge"), "launch", launch_file(folder, each), *arguments)
        try:
            address = launch.wait_for_line(r"Open in a browser: http://(\S+)", START_S)[1]
            wait_until(lambda: len(session.node.get_publishers_info_by_topic("/tf")) >= 4 * each, "vehicles", START_S)
            started_s = time.monotonic() - started_s
            with Viewer(address) as viewer:
                viewer.subscribe("/tf")
                robots = [f"robot{number}" for number in range(1, max(2, each))]
                commander = Commander(session, robots)
                watch(viewer, SETTLING_S[short])
                pids = started(launch)
                began_s, began_ns, shown = time.monotonic(), time.time_ns(), len(viewer.messages)
                before = {label: usage_of(pid) for label, pid in pids.items()}
                watch(viewer, seconds)
                after = {label: usage_of(pid) for label, pid in pids.items()}
                lasted_s, ended_ns, shown = time.monotonic() - began_s, time.time_ns(), len(viewer.messages) - shown
                stopped_ns = commander.stop()
                watch(viewer, 2 * NEUTRAL_S)
            restarts = len(re.findall(r" started \(pid", launch.output)) - len(started(launch))
            ending_s = time.monotonic()
            launch.send(signal.SIGINT)
            launch.wait(END_S)
            ending_s = time.monotonic() - ending_s
        finally:
            launch.end()
        total, lines = by_kind(before, after, lasted_s)
        for line in lines:
            verdict.figure(line)
        spent_s = statistics.mean(usage.cpu_s for usage in before.values())
        verdict.figure(f"started within {started_s:.0f} s, for {spent_s:.1f} s of a core each")
        transforms = "the recorder was killed before its bag was complete"
        if counts := re.search(r"/tf +\S+ +(\d+) +(\d+)", launch.output):
            recorded, gaps_s = read_tf(bag, (began_ns, ended_ns))
            kept = int(counts[1]) / (int(counts[1]) + int(counts[2]))
            transforms = (
                f"of /tf {100 * kept:.1f} % recorded and {100 * shown * kept / recorded:.1f} % in the page, gaps of "
                f"{max(gaps_s.values()):.2f} s at most"
            )
            for drone in flew(bag):
                verdict.stopped(False, f"{drone} reports that it flew without a request.")
        commands = judge_robots(verdict, folder, each, commander.given_ns, stopped_ns)
        if restarts:
            verdict.figure(f"{restarts} processes were restarted.")
        by_term, by_kill = (ended_by(launch.output, name) for name in ("SIGTERM", "SIGKILL"))
        verdict.figure(
            f"{4 * each} vehicles, {len(pids)} processes: {total:.0f} % of a core; {transforms}; {commands}; "
            f"ended in {ending_s:.1f} s, {by_term} by SIGTERM, {by_kill} by SIGKILL"
        )
    return verdict.status


def ended_by(output: str, name: str) -> str:
    """Return the number of processes that needed a signal to exit, and their kinds."""
    kinds = Counter(re.findall(rf"(\S+)-\d+ has not stopped, and gets {name}", output))
    return f"{kinds.total()} ({', '.join(kinds)})" if kinds else "none"


def watch(viewer: Any, seconds: float) -> None:
    """Read the page's data for this time."""
    end_s = time.monotonic() + seconds
    while (left_s := end_s - time.monotonic()) > 0:
        viewer.receive(left_s)
