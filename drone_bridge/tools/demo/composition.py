# SPDX-License-Identifier: Apache-2.0
"""A composition started through its launch file, for a demonstration."""

import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

from drone_bridge.tools.launch.arguments import declared_in
from drone_bridge.tools.launch.command import file_of_package
from drone_bridge.tools.launch.parse import load

# For the whole composition.
STOP_TIMEOUT_S = 15.0
#: `drone-bridge launch` ends with this status when it was interrupted and everything ended well.
INTERRUPTED = 128 + signal.SIGINT
#: The ROS domains of demonstrations: seldom a user's own, and none of those of tests and benchmarks.
DOMAINS = range(61, 82)


def isolate_ros_graph() -> None:
    """Give this process and its children a ROS domain of their own, on this machine only. Call before rclpy.init."""
    os.environ["ROS_DOMAIN_ID"] = str(unused_domain())
    os.environ |= confinement()


def confinement() -> dict[str, str]:
    """Return the environment variables that keep topics on this machine."""
    is_fast_dds = "fastrtps" in os.environ.get("RMW_IMPLEMENTATION", "rmw_fastrtps_cpp")
    profile = Path(os.environ.get("FASTDDS_DEFAULT_PROFILES_FILE", "")).name
    # This profile confines them already, and LOCALHOST would add sockets on all interfaces: docs/network.md.
    is_confined = is_fast_dds and profile == "fastdds_loopback.xml"
    variables = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "SYSTEM_DEFAULT" if is_confined else "LOCALHOST"}
    if os.environ.get("ROS_DISTRO") == "humble":  # which has another name for it; later ones complain about that
        variables["ROS_LOCALHOST_ONLY"] = "1"
    return variables


#: So many participants of a domain are looked for.
PARTICIPANTS = 32


def unused_domain() -> int:
    """Return one of DOMAINS in which no node of this machine runs, if there is one."""
    domains = random.SystemRandom().sample(DOMAINS, len(DOMAINS))
    return next(filter(_is_unused, domains), domains[0])


def _is_unused(domain: int) -> bool:
    # The first has the first port, and the next one has it when that has left.
    return all(_is_free(discovery_port(domain) + 2 * number) for number in range(PARTICIPANTS))


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def discovery_port(domain: int) -> int:
    """Return the UDP port at which the first participant of a DDS domain is discovered (RTPS 2.5, section 9.6.1.1)."""
    return 7410 + 250 * domain


def free_port() -> int:
    """Return a free TCP port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ports_of(launch_file: str) -> list[str]:
    """Return the arguments of a launch file that choose ports, but for that of the page."""
    declared = declared_in(load(file_of_package("drone_bridge", launch_file)))
    return [name for name in declared if name.endswith("_port") and name != "view_port"]


class Composition:
    """`drone-bridge launch` with these arguments, its output logged to a file and searchable while it runs."""

    def __init__(self, launch_file: str, log: Path, **arguments: object) -> None:
        """Start it. Raises OSError if the log can't be written."""
        self._log = log.open("w")
        command = [sys.executable, "-m", "drone_bridge.tools.cli", "launch", launch_file]
        command += [
            f"{name}:={str(value).lower() if isinstance(value, bool) else value}" for name, value in arguments.items()
        ]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._lines: list[str] = []
        self._changed = threading.Condition()
        self._has_ended = False
        self._reader = threading.Thread(target=self._read, name="composition output", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._log as log:
            for line in self._process.stdout:
                log.write(line)
                with self._changed:
                    self._lines.append(line)
                    self._changed.notify_all()
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait_for(self, pattern: str, timeout_s: float) -> bool:
        """Wait for the output to match; return False if the process ends or time runs out first."""
        with self._changed:
            self._changed.wait_for(lambda: self.matches(pattern) or self._has_ended, timeout_s)
            return bool(self.matches(pattern))

    def matches(self, pattern: str | re.Pattern[str]) -> list[re.Match[str]]:
        """Return all matches in the output so far."""
        return list(re.finditer(pattern, "".join(self._lines)))

    @property
    def has_failed(self) -> bool:
        """Whether one of its processes has ended, as none does by itself."""
        return not self.is_running or bool(self.matches(r"(?m)^\[launch\] .*(ended|died)"))

    def stop(self) -> bool:
        """Interrupt the composition, and return whether it shut down cleanly."""
        if self.is_running:
            self._process.send_signal(signal.SIGINT)
        status = self._process.wait(STOP_TIMEOUT_S)
        self._reader.join(STOP_TIMEOUT_S)
        return status in (0, INTERRUPTED)

    def tail(self, lines: int = 20) -> str:
        """Return the last lines of output."""
        return "".join(self._lines[-lines:])
