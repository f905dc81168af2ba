# SPDX-License-Identifier: Apache-2.0
"""The round trip of a legacy pair through ROS, beside the same pair connected directly and through a bare script.

    python benchmark/testbed_relay.py      (see README.md)

Unpaced and in lockstep: the testbed sends a frame as soon as the autopilot's answer to the one before has come, and
checks all four numbers of it, which no frame near it has; the autopilot checks images and attitude.
"""

import argparse
import contextlib
import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Final

from children import Child
from domains import DOMAINS
from system import bridge_command, free_port, script_command
from testbed_peer import Conversation, Peer

DIRECT, SCRIPT, RELAY = "directly", "bare script", "relay"
AIM: Final = 1.3  # of the script's round trip
WARM_UP_S: Final = 2.0
MEETING_S: Final = 30.0


class Route:
    """A testbed and an autopilot, with or without a relay between them."""

    def __init__(self, name: str, size: tuple[int, int], scratch: Path, stack: contextlib.ExitStack) -> None:
        self.name = name
        self._size = size
        self._peer = Peer()
        stack.callback(self._peer.close)
        port = self._peer.port if name == DIRECT else free_port()
        domain = random.choice(DOMAINS)
        for command in _between(name, self._peer.port, port, size):
            stack.callback(Child(f"{name}: {Path(command[0]).name}", command, domain, scratch).stop)
        child = Child(f"{name}: autopilot", script_command("testbed_autopilot.py", str(port)), domain, scratch)
        stack.callback(child.stop)
        self._conversation: Conversation | None = None
        self._number = 0

    def warm_up(self) -> None:
        """Exchange frames until discovery is complete."""
        self._peer.wait_longer(MEETING_S)
        self._conversation = self._peer.meet(*self._size)
        began_s = time.monotonic()
        right = 0
        while right < 20 or time.monotonic() - began_s < WARM_UP_S:
            if time.monotonic() - began_s > MEETING_S:
                raise TimeoutError(f"{self.name}: no frame was answered by the autopilot within {MEETING_S:g} s.")
            right += self._exchange()[0]

    def round_trips_s(self, seconds: float) -> list[float]:
        """Measure for so long."""
        end_s, took = time.monotonic() + seconds, []
        while time.monotonic() < end_s:
            is_right, took_s = self._exchange()
            if not is_right:
                raise ValueError(f"{self.name}: a frame was not answered by the autopilot.")
            took.append(took_s)
        return took

    def _exchange(self) -> tuple[bool, float]:
        assert self._conversation
        self._number += 1
        mark, answer, took_s = self._conversation.exchange_moving(1, self._number)
        return all(abs(came - sent) < 1e-3 for came, sent in zip(answer, mark.answer, strict=True)), took_s


def _between(name: str, testbed_port: int, port: int, size: tuple[int, int]) -> list[list[str]]:
    """Return the commands to start between a testbed and an autopilot."""
    if name == SCRIPT:
        ends = script_command("testbed_relay_floor.py", str(port), "/script", *map(str, size))
        return [ends, script_command("testbed_floor.py", str(testbed_port), "/script", "--wait")]
    if name == RELAY:
        common = {"sync": "lockstep", "attitude_layout": "pitch_yaw"}  # the peer's time stands still
        server = bridge_command("testbed_server", "/relay", port=port, **common)
        return [server, bridge_command("testbed_bridge", "/relay", port=testbed_port, **common)]
    return []


def main() -> int:
    """Measure in turns and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each route in each round (default 2)")
    parser.add_argument("--width", type=int, default=320)
    parser.add_argument("--height", type=int, default=240)
    options = parser.parse_args()
    medians: dict[str, list[float]] = {DIRECT: [], SCRIPT: [], RELAY: []}
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as stack:
        routes = [Route(name, (options.width, options.height), Path(scratch), stack) for name in medians]
        for route in routes:
            route.warm_up()
        for number in range(options.rounds):
            for route in routes if number % 2 == 0 else reversed(routes):
                medians[route.name].append(1000 * median(route.round_trips_s(options.seconds)))
    print(f"stereo {options.width} x {options.height}, unpaced, {options.rounds} rounds of {options.seconds:g} s\n")
    print(
        "| between testbed and autopilot | round trip (ms), least .. greatest | of the script's |\n| --- | --- | --- |"
    )
    for name, found in medians.items():
        ratio = median(own / script for own, script in zip(found, medians[SCRIPT], strict=True))
        print(f"| {name} | {median(found):.2f}, {min(found):.2f} .. {max(found):.2f} | {ratio:.2f} |")
    print(f"\naim: relay <= {AIM:g} of the script's, {'met' if ratio <= AIM else 'MISSED'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
