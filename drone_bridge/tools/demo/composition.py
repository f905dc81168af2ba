# SPDX-License-Identifier: Apache-2.0
"""Composition: runs a launch file for a demonstration, with ROS confined to this machine."""

import os
import random
import re
import signal
import socket
import subprocess
import threading
from pathlib import Path

from drone_bridge.net.python_child import module_command
from drone_bridge.tools.launch.arguments import declared_in
from drone_bridge.tools.launch.command import file_of_package
from drone_bridge.tools.launch.parse import load

# Timeout of the shutdown of the whole composition.
STOP_TIMEOUT_S = 15.0
#: Exit status of `drone-bridge launch` after an interrupt and a clean shutdown.
INTERRUPTED = 128 + signal.SIGINT
#: ROS domains of demonstrations, rarely used otherwise, and distinct from those of tests.
DOMAINS = range(61, 82)


def isolate_ros_graph() -> None:
    """Select an unused ROS domain on this machine only, for this process and its children. Call before rclpy.init."""
    os.environ["ROS_DOMAIN_ID"] = str(unused_domain())
    os.environ |= confinement()


def confinement() -> dict[str, str]:
    """Return the environment variables that keep topics on this machine."""
    is_fast_dds = "fastrtps" in os.environ.get("RMW_IMPLEMENTATION", "rmw_fastrtps_cpp")
    profile = Path(os.environ.get("FASTDDS_DEFAULT_PROFILES_FILE", "")).name
    # This profile already confines topics, and LOCALHOST would add sockets on all interfaces: docs/network.md.
    is_confined = is_fast_dds and profile == "fastdds_loopback.xml"
    variables = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "SYSTEM_DEFAULT" if is_confined else "LOCALHOST"}
    if os.environ.get("ROS_DISTRO") == "humble":  # later distributions warn about this name
        variables["ROS_LOCALHOST_ONLY"] = "1"
    return variables


#: Number of participants whose ports are checked in a domain.
PARTICIPANTS = 32


def unused_domain() -> int:
    """Return a random one of DOMAINS, if possible one without nodes on this machine."""
    domains = random.SystemRandom().sample(DOMAINS, len(DOMAINS))
    return next(filter(_is_unused, domains), domains[0])


def _is_unused(domain: int) -> bool:
    # Each participant takes the first free port, also one whose owner has left.
    return all(_is_free(discovery_port(domain) + 2 * number) for number in range(PARTICIPANTS))


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def discovery_port(domain: int) -> int:
    """Return the discovery port (UDP) of the first participant in a DDS domain (RTPS 2.5, section 9.6.1.1)."""
    return 7410 + 250 * domain


def free_port() -> int:
    """Return a free TCP port on this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ports_of(launch_file: str) -> list[str]:
    """Return the port arguments of a launch file, except that of the page."""
    declared = declared_in(load(file_of_package("drone_bridge", launch_file)))
    return [name for name in declared if name.endswith("_port") and name != "view_port"]


class Composition:
    """Process of `drone-bridge launch`, whose output is logged to a file and searchable while it runs."""

    def __init__(self, launch_file: str, log: Path, **arguments: object) -> None:
        """Start the process. Raises OSError if the log can't be written."""
        self._log = log.open("w")
        command = module_command("drone_bridge.tools.cli", "launch", launch_file)
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
        """Wait until the output matches. Return False on timeout, or if the process ends first."""
        with self._changed:
            self._changed.wait_for(lambda: self.matches(pattern) or self._has_ended, timeout_s)
            return bool(self.matches(pattern))

    def matches(self, pattern: str | re.Pattern[str]) -> list[re.Match[str]]:
        """Return all matches in the output so far."""
        return list(re.finditer(pattern, "".join(self._lines)))

    @property
    def has_failed(self) -> bool:
        """Whether a process of the composition has ended, which none does by itself."""
        return not self.is_running or bool(self.matches(r"(?m)^\[launch\] .*(ended|died)"))

    def stop(self) -> bool:
        """Interrupt the composition. Return whether it shut down cleanly."""
        if self.is_running:
            self._process.send_signal(signal.SIGINT)
        status = self._process.wait(STOP_TIMEOUT_S)
        self._reader.join(STOP_TIMEOUT_S)
        return status in (0, INTERRUPTED)

    def tail(self, lines: int = 20) -> str:
        """Return the last lines of output."""
        return "".join(self._lines[-lines:])
