# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge doctor`: check the installation, the network and the running nodes, for a problem report.

A line begins with ok, `!` (limited; the line has a remedy) or `x` (it does not work).
"""

import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from drone_bridge.kind import OWN, kinds, load, unloadable
from drone_bridge.net.python_child import code_command
from drone_bridge.net.wire_log import minutes_folder
from drone_bridge.programs.missing_package import install_command
from drone_bridge.ros.process import environment
from drone_bridge.ros.process.log_pipe import NO_FILE_OF_RCL
from drone_bridge.ros.process.shared_memory import SHARED_MEMORY, abandoned, shortage
from drone_bridge.tools.command_parser import CommandParser
from drone_bridge.tools.shared.discovery import DISCOVERY_S

if TYPE_CHECKING:
    from drone_bridge.tools.doctor.running_nodes import RunningNode

#: Optional modules, with the features that need them.
OPTIONAL = {
    "cv2": "drone_controller, pad_finder, the emulator of the landing, JPEGs",
    "cv_bridge": "drone_controller, pad_finder",
    "av": "the camera of an AR.Drone 2",
    "foxglove": "the page (view:=true)",
    "websockets": "the page (view:=true)",
    "segno": "the QR code of the page",
    "mcap": "wire logs and the recorder",
    "dpkt": "a pcap as a robot",
    "rosbags": "info, report, view, play, export",
    "plotly": "report",
    "orjson": "fast reading of telemetry",
    "pybase64": "fast reading of telemetry",
}

_TALKER = """
import sys, rclpy
from std_msgs.msg import String
from drone_bridge.ros.process.environment import complete_environment
from drone_bridge.ros.process.log_pipe import NO_FILE_OF_RCL
complete_environment()
rclpy.init(args=NO_FILE_OF_RCL)
node = rclpy.create_node("doctor_talker")
publisher = node.create_publisher(String, sys.argv[1], 1)
node.create_timer(0.05, lambda: publisher.publish(String(data="here")))
node.create_timer(float(sys.argv[2]), rclpy.try_shutdown)
try:
    rclpy.spin(node)
except rclpy.executors.ExternalShutdownException:
    pass
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: a subject, its state, and a remedy if there is a problem."""

    subject: str
    found: str
    remedy: str = ""
    is_fatal: bool = False

    def __str__(self) -> str:
        mark = "ok" if not self.remedy else "x " if self.is_fatal else "! "
        line = f"{mark} {self.subject:14} {self.found}"
        return f"{line}\n{'':18}-> {self.remedy}" if self.remedy else line


def main(argv: Sequence[str] | None = None) -> int:
    """Print the findings. Return 1 if something does not work."""
    parser = CommandParser(prog="drone-bridge doctor", description=__doc__)
    parser.parse_args(argv)
    if not (environment.foreign_ros() or environment.missing_middleware() or environment.domain_problem()):
        environment.complete_environment()
    fatal = False
    for examine in EXAMINATIONS:
        for finding in examine():
            print(finding, flush=True)
            fatal |= finding.is_fatal
    return 1 if fatal else 0


def installation() -> Iterator[Finding]:
    """Report versions and paths."""
    try:
        package = version("drone_bridge")
    except PackageNotFoundError:
        package = "of an unknown version"
    yield Finding("drone_bridge", f"{package}, in {Path(__file__).parents[2]}")
    yield Finding("Python", f"{platform.python_version()}, {platform.system()} {platform.machine()}, in {sys.prefix}")


def ros() -> Iterator[Finding]:
    """Report the ROS distribution, and whether our messages can be used with it."""
    spec = find_spec("rclpy")
    if spec is None or spec.origin is None:
        has_wheels = (platform.system(), platform.machine()) == ("Linux", "x86_64")
        remedy = "pip install 'drone_bridge[ros]'" if has_wheels else "see docs/install.md"
        yield Finding("ROS 2", "not found: codecs, emulators and operators work", remedy)
        return
    middleware = os.environ.get("RMW_IMPLEMENTATION") or "rmw_fastrtps_cpp"
    where = f"{_distribution()}, {middleware}, in {Path(spec.origin).parents[1]}"
    if problem := environment.foreign_ros() or environment.missing_middleware():
        yield Finding("ROS 2", where, problem, is_fatal=True)
        return
    try:
        from drone_bridge.msg import LandingPad

        LandingPad.__class__.__import_type_support__()
        yield Finding("ROS 2", where)
    except Exception as error:  # compiled for another Python, another ROS, or missing
        yield Finding("ROS 2", where, f"the messages of drone_bridge can't be used: {error}", is_fatal=True)


def _distribution() -> str:
    """Return the distribution in use. For wheels, ROS_DISTRO is ignored: the shell may have set up another ROS."""
    try:
        return f"wheels, rclpy {version('ros-rclpy')}"
    except PackageNotFoundError:
        return os.environ.get("ROS_DISTRO") or "no ROS_DISTRO is set"


def reach() -> Iterator[Finding]:
    """Report the machines that topics reach."""
    if problem := environment.domain_problem():
        yield Finding("domain", problem, "no node starts: unset the variable, or set it to a number", is_fatal=True)
    if problem := environment.security_problem():
        yield Finding("security", problem, "export ROS_SECURITY_STRATEGY=Enforce, or unset ROS_SECURITY_ENABLE")
    profile = os.environ.get(environment.PROFILE)
    domain = os.environ.get("ROS_DOMAIN_ID") or "0"
    bound = f"domain {domain}, {environment.RANGE}={os.environ.get(environment.RANGE) or 'unset'}"
    if not profile:
        remedy = (
            "launch with localhost:=true to keep them on this machine. Otherwise anyone on its networks can publish "
            f"cmd_vel. For large images set {environment.PROFILE} to share/drone_bridge/config/fastdds.xml"
        )
        yield Finding("topics", f"{bound}, all networks of this machine, no profile: large images are slow", remedy)
    elif not Path(profile).is_file():
        yield Finding("topics", bound, f"{environment.PROFILE} names {profile}, which does not exist", is_fatal=True)
    else:
        if environment.is_on_this_machine_only():
            yield Finding("topics", f"{bound}, this machine only (127.0.0.1), by {profile}")
            return
        remedy = "anyone there can publish cmd_vel; to prevent that, launch with localhost:=true, see docs/network.md"
        is_wanted = os.environ.get(environment.RANGE) == "SUBNET" or bool(os.environ.get("ROS_STATIC_PEERS"))
        yield Finding("topics", f"{bound}, all networks of this machine, by {profile}", "" if is_wanted else remedy)


def memory() -> Iterator[Finding]:
    """Report the size of the shared memory, and the files of killed processes in it."""
    if not SHARED_MEMORY.is_dir():
        yield Finding("shared memory", f"there is no {SHARED_MEMORY}: images are sent by UDP, at most 0.5 MB each")
        return
    has = os.statvfs(SHARED_MEMORY)
    sizes = f"{has.f_bavail * has.f_frsize / 1e6:.0f} of {has.f_blocks * has.f_frsize / 1e6:.0f} MB free"
    left = abandoned()
    yield Finding("shared memory", f"{sizes}, {len(left)} files of killed processes", shortage() or "")


def _can_start_nodes() -> bool:
    """Return whether nodes can be started. If not, an earlier finding has the reason."""
    problem = environment.foreign_ros() or environment.missing_middleware() or environment.domain_problem()
    return find_spec("rclpy") is not None and not problem


def discovery() -> Iterator[Finding]:
    """Measure the time from the start of another process to its first message."""
    if not _can_start_nodes():
        return
    try:
        took_s, problem = _receive_from_other_process()
    except Exception as error:  # any exception of the middleware
        reason = f"no node could be started: {type(error).__name__} {error}".rstrip()
        yield Finding("discovery", reason, "see docs/network.md", is_fatal=True)
        return
    if problem is None:
        yield Finding("discovery", f"received a message of another process {took_s:.1f} s after its start")
    else:
        yield Finding(
            "discovery", f"received no message of another process within {took_s:.0f} s", problem, is_fatal=True
        )


def _receive_from_other_process() -> tuple[float, str | None]:
    """Return the elapsed time, and None, or on timeout the last line that the other process printed."""
    import rclpy
    from std_msgs.msg import String

    from drone_bridge.tools.shell.node import spin_until

    topic, heard = f"doctor_{os.getpid()}", list[String]()
    rclpy.init(args=NO_FILE_OF_RCL)
    try:
        node = rclpy.create_node(topic)
        node.create_subscription(String, topic, heard.append, 1)
        began_s = time.monotonic()
        talker = subprocess.Popen(code_command(_TALKER, topic, str(2 * DISCOVERY_S)), stderr=subprocess.PIPE, text=True)
        try:
            spin_until(node, lambda: heard or talker.poll() is not None, DISCOVERY_S)
        finally:
            talker.terminate()
            _, errors = talker.communicate(timeout=DISCOVERY_S)
        took_s = time.monotonic() - began_s
    finally:
        rclpy.try_shutdown()
    problem = environment.discovery_problem() or (errors.strip().splitlines() or ["see docs/network.md"])[-1]
    return took_s, None if heard else problem


def running() -> Iterator[Finding]:
    """Report the state of each running bridge and server."""
    if not _can_start_nodes():
        return
    import rclpy

    from drone_bridge.tools.doctor.running_nodes import inspect_nodes

    rclpy.init(args=NO_FILE_OF_RCL)
    try:
        found = inspect_nodes()
    except Exception as error:  # any exception of the middleware
        yield Finding(
            "running", f"the running nodes could not be inspected: {error}", "see docs/network.md", is_fatal=True
        )
        return
    finally:
        rclpy.try_shutdown()
    yield from judge(found)


def judge(found: "Sequence[RunningNode]") -> Iterator[Finding]:
    """Report the state of each node, with its obstacles as it reports them itself."""
    if not found:
        yield Finding("running", "no bridge or server in this domain")
    for node in found:
        named = f"{node.name} ({node.title})"
        if node.status is None:
            yield Finding("running", named, "it does not report on /diagnostics: restart it")
        elif level := node.status.level[0]:
            yield Finding("running", named, f"{node.status.message}", is_fatal=level > 1)
        else:
            by = f", commanded by {node.commander}" if node.commander else ""
            yield Finding("running", f"{named}, {node.status.message}{by}")


def vehicles() -> Iterator[Finding]:
    """Report what this machine shows about vehicles, to which nothing is sent."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `others` reports the reason
        found = [kind for kind in kinds().values() if kind.findings]
    for kind in found:
        for sentence, remedy in load(kind.findings)():
            yield Finding(kind.title or kind.name, sentence, remedy)


def wire() -> Iterator[Finding]:
    """Report the last minutes of the wire that were saved."""
    folder = minutes_folder()
    files = sorted(folder.glob("*.mcap"), key=os.path.getmtime)
    newest = f", the newest {files[-1].name}" if files else ""
    yield Finding("wire", f"{len(files)} last minutes before a fault in {folder}{newest}")


def others() -> Iterator[Finding]:
    """Report the robots in one class, and why one can't be loaded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the reason is below
        found = [kind for name, kind in kinds().items() if name not in OWN]
    for kind in found:
        title = f" ({kind.title})" if kind.title else ""
        yield Finding("protocol", f"{kind.name}{title}: {kind.summary}, described by {kind.module}")
    for name, reason in unloadable().items():
        yield Finding("protocol", f"{name} can't be loaded", reason, is_fatal=True)


def optional() -> Iterator[Finding]:
    """Report the missing optional libraries, with the features that need them."""
    missing = [name for name in OPTIONAL if not _is_installed(name)]
    there = [name for name in OPTIONAL if name not in missing]
    yield Finding("libraries", ", ".join(there) or "none of the optional ones")
    for name in missing:
        yield Finding("", f"no {name}: {OPTIONAL[name]}", install_command(name))


def _is_installed(name: str) -> bool:
    """Return whether a module is there. rosbags is a folder without __init__.py, as is one that pip has emptied."""
    spec = find_spec(name)
    folders = (spec and spec.submodule_search_locations) or ()
    return bool(spec and (spec.origin or any(any(Path(each).glob("*/__init__.py")) for each in folders)))


EXAMINATIONS = (installation, ros, reach, memory, discovery, running, vehicles, wire, others, optional)
