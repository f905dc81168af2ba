# SPDX-License-Identifier: Apache-2.0
"""A bridge beside its vehicle, and an operator on another machine, over a link that loses packets and is cut.

Both machines are network namespaces of this one, so that all times are of one clock. The link is cut without either end
being notified, and restored. See docs/deploy.md.
"""

import argparse
import contextlib
import itertools
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from children import Child, ChildError
from domains import DOMAINS
from impaired_link import Impairment
from machines import MachinesError, two_machines_far_apart
from system import bridge_command, script_command

COMMAND_TIMEOUT_S = 0.5
FRAMES_PER_S = 40.0
COMMANDS_PER_S = 20.0
#: As in hosts_operator.py, which numbers its commands by how fast they roll, degrees/s.
FIRST_ROLL_RATE = 1000
TIMEOUT_S = 60.0  # for each step
#: What is sent in the last moments before the cut may not have arrived.
ON_ITS_WAY_S = 1.0


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings of a trial."""

    impairment: Impairment = field(default_factory=Impairment)
    seconds: float = 20.0  # of measurement before the cut
    cut_s: float = 3.0
    depth: int = 10  # of the operator's publisher: commands kept for a reliable bridge that misses them
    is_best_effort: bool = True  # how the bridge subscribes to commands
    is_raw: bool = False  # whether raw images are viewed, and not compressed ones


@dataclass(frozen=True, slots=True)
class Answer:
    """The vehicle's command after a frame; times in s since 1970."""

    frame_s: float
    time_s: float
    roll_rate: float  # degrees/s

    @property
    def command(self) -> int | None:
        """The number of the command that it follows; None if it is the neutral one."""
        return round(self.roll_rate) - FIRST_ROLL_RATE if self.roll_rate >= FIRST_ROLL_RATE else None


@dataclass(frozen=True, slots=True)
class Image:
    """An image that reached the viewer; times in s since 1970."""

    stamp_s: float
    arrived_s: float
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Trial:
    """The observations of a trial; times in s since 1970."""

    plan: Plan
    began_s: float
    cut_s: float
    mended_s: float
    commands: dict[int, float]  # when each was given
    answers: list[Answer]
    images: list[Image]
    refused: int  # commands, by the bridge's diagnostics
    # In both directions:
    packets_arrived: int
    packets_lost: int
    packets_dropped: int  # by a full queue

    def is_measured(self, moment_s: float) -> bool:
        """Return whether what was sent at this time counts for latencies and losses."""
        return self.began_s <= moment_s < self.cut_s - ON_ITS_WAY_S

    @property
    def command_ages_s(self) -> dict[int, float]:
        """Age of each command when it first reached the vehicle, by its number."""
        ages_s: dict[int, float] = {}
        for answer in self.answers:
            if answer.command is not None:
                ages_s.setdefault(answer.command, answer.time_s - self.commands[answer.command])
        return ages_s

    @property
    def command_latencies_s(self) -> list[float]:
        """Ages of the measured commands that reached the vehicle."""
        ages_s = self.command_ages_s
        return [
            ages_s[number]
            for number, given_s in self.commands.items()
            if self.is_measured(given_s) and number in ages_s
        ]

    @property
    def command_loss(self) -> float:
        """The share of commands that never reached the vehicle."""
        given = sum(self.is_measured(given_s) for given_s in self.commands.values())
        return 1 - len(self.command_latencies_s) / max(1, given)

    @property
    def image_latencies_s(self) -> list[float]:
        """From the frame's arrival at the bridge to the viewer's callback."""
        return [image.arrived_s - image.stamp_s for image in self.images if self.is_measured(image.stamp_s)]

    @property
    def image_loss(self) -> float:
        """The share of frames whose image never reached the viewer."""
        frames = sum(self.is_measured(answer.frame_s) for answer in self.answers)
        return 1 - len(self.image_latencies_s) / max(1, frames)

    @property
    def neutral_after_s(self) -> float:
        """From the cut until the vehicle got a neutral command."""
        return (
            next(answer.time_s for answer in self.answers if answer.time_s > self.cut_s and answer.command is None)
            - self.cut_s
        )

    @property
    def commanded_after_s(self) -> float:
        """From mending the link until the vehicle followed a command again."""
        return (
            next(answer.time_s for answer in self.answers if answer.time_s > self.mended_s and answer.command)
            - self.mended_s
        )

    @property
    def viewed_after_s(self) -> float:
        """From mending the link until a new image arrived."""
        return next(image.arrived_s for image in self.images if image.stamp_s > self.mended_s) - self.mended_s

    @property
    def stops(self) -> int:
        """How often the vehicle went neutral for lack of commands while the link was up."""
        told = [answer.command for answer in self.answers if self.is_measured(answer.frame_s)]
        return sum(now is None and before is not None for before, now in itertools.pairwise(told))

    def table(self) -> str:
        """Return the figures as a table of Markdown."""
        size_kb = sum(image.size_bytes for image in self.images) / len(self.images) / 1000
        seconds = self.cut_s - ON_ITS_WAY_S - self.began_s
        oldest_s = max(self.command_ages_s.values())
        rows = {
            "command latency, operator to vehicle": percentiles(self.command_latencies_s),
            "commands that never reached the vehicle": f"{100 * self.command_loss:.1f} %",
            "times it went neutral for lack of commands": f"{self.stops} in {seconds:.0f} s",
            "oldest command executed": f"{oldest_s:.2f} s",
            "commands refused as too old": f"{self.refused}",
            f"image of {size_kb:.1f} kB, bridge to viewer": percentiles(self.image_latencies_s),
            "images that never arrived": f"{100 * self.image_loss:.1f} %",
            f"neutral after a cut (`command_timeout` is {COMMAND_TIMEOUT_S} s)": f"{self.neutral_after_s:.2f} s",
            "commands resumed after it": f"{self.commanded_after_s:.2f} s",
            "images resumed after it": f"{self.viewed_after_s:.2f} s",
            "packets that arrived, were lost, found the queue full": (
                f"{self.packets_arrived}, {self.packets_lost}, {self.packets_dropped}"
            ),
        }
        return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())])


def percentiles(values_s: Sequence[float]) -> str:
    """Return the median and the 99th percentile in words."""
    if not values_s:
        return "none came"
    ordered = sorted(values_s)
    return f"p50 {1000 * ordered[len(ordered) // 2]:.0f} ms, p99 {1000 * ordered[99 * len(ordered) // 100]:.0f} ms"


class Programs:
    """The programs on both machines."""

    def __init__(self, stack: contextlib.ExitStack, plan: Plan, scratch: Path) -> None:
        """Create the machines and start the programs; the stack stops them. Raises MachinesError or ChildError."""
        robot, laptop, self.link = stack.enter_context(two_machines_far_apart(plan.impairment))
        domain = random.choice(DOMAINS)
        profile = Path(get_package_share_directory("drone_bridge"), "config", "fastdds.xml")
        reach = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET", "FASTDDS_DEFAULT_PROFILES_FILE": str(profile)}

        def start(name: str, command: list[str]) -> Child:
            child = Child(name, command, domain, scratch)
            stack.callback(child.stop)
            return child

        self.vehicle = start("vehicle", robot.command(*script_command("hosts_vehicle.py", str(FRAMES_PER_S))))
        port = self.vehicle.wait_for_line(0, TIMEOUT_S)
        settings = {"port": port, "command_timeout": COMMAND_TIMEOUT_S}
        if plan.is_best_effort:
            settings |= {"qos_overrides./cmd_rates.subscription.reliability": "best_effort"}
        bridge = bridge_command("testbed_bridge", "/", **settings)
        start("bridge", robot.command(*bridge, **reach))
        words = [str(COMMANDS_PER_S), "--depth", str(plan.depth), *(["--raw"] if plan.is_raw else [])]
        operator = script_command("hosts_operator.py", *words)
        self.operator = start("operator", laptop.command(*operator, **reach, ROS_STATIC_PEERS=robot.address))

    def wait_for_answer(self, is_it: Callable[[Answer], bool]) -> None:
        """Wait for such a command to the vehicle."""
        self.vehicle.wait_until(lambda lines: any(map(is_it, read_answers(lines))), TIMEOUT_S)

    def wait_for_operator(self, word: str, is_it: Callable[[list[float]], bool]) -> None:
        """Wait for such a line with this word."""
        self.operator.wait_until(lambda lines: any(map(is_it, read_lines(word, lines))), TIMEOUT_S)


def read_answers(lines: list[str]) -> Iterator[Answer]:
    """Parse the vehicle's output; its first line is its port."""
    return (Answer(*map(float, line.split())) for line in lines[1:])


def read_lines(word: str, lines: list[str]) -> Iterator[list[float]]:
    """Parse the operator's lines that begin with a word."""
    return (list(map(float, line.split()[1:])) for line in lines if line.startswith(f"{word} "))


def run_trial(plan: Plan, scratch: Path) -> Trial:
    """Measure, cut the link, mend it, and wait until everything is back.

    Raises MachinesError where namespaces are not allowed, and ChildError when something does not come back.
    """
    with contextlib.ExitStack() as stack:
        programs = Programs(stack, plan, scratch)
        programs.wait_for_answer(lambda answer: answer.command is not None)
        programs.wait_for_operator("image", lambda _: True)
        began_s = time.time()
        programs.wait_for_operator("command", lambda command: command[1] > began_s + plan.seconds)
        programs.link.cut()
        cut_s = time.time()
        programs.wait_for_answer(lambda answer: answer.time_s > cut_s and answer.command is None)
        programs.wait_for_operator("command", lambda command: command[1] > cut_s + plan.cut_s)
        programs.link.mend()
        mended_s = time.time()
        programs.wait_for_operator("image", lambda image: image[0] > mended_s)
        programs.wait_for_answer(lambda answer: answer.time_s > mended_s and answer.command is not None)
        heard = len(list(read_lines("refused", programs.operator.lines)))
        programs.operator.wait_until(lambda lines: len(list(read_lines("refused", lines))) > heard, TIMEOUT_S)
        vehicle, operator = list(programs.vehicle.lines), list(programs.operator.lines)
        directions = programs.link.directions
    return Trial(
        plan,
        began_s,
        cut_s,
        mended_s,
        commands={int(number): given_s for number, given_s in read_lines("command", operator)},
        answers=list(read_answers(vehicle)),
        images=[Image(stamp_s, arrived_s, int(size)) for stamp_s, arrived_s, size in read_lines("image", operator)],
        refused=int(list(read_lines("refused", operator))[-1][0]),
        packets_arrived=sum(direction.arrived for direction in directions),
        packets_lost=sum(direction.lost for direction in directions),
        packets_dropped=sum(direction.dropped for direction in directions),
    )


def main() -> int:
    """Measure once and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    link = Impairment()
    parser.add_argument("--loss", type=float, default=100 * link.loss, help="of packets, each way, %% (%(default)g)")
    parser.add_argument("--delay", type=float, default=1000 * link.delay_s, help="one way, ms (%(default)g)")
    parser.add_argument("--rate", type=float, default=link.bits_per_s / 1e6, help="each way, Mbit/s (%(default)g)")
    parser.add_argument("--seconds", type=float, default=20.0, help="measured before the cut (%(default)g)")
    parser.add_argument("--cut", type=float, default=3.0, help="how long nothing gets through, s (%(default)g)")
    parser.add_argument("--seed", type=int, default=link.seed, help="of what is lost (%(default)s)")
    parser.add_argument("--reliable", action="store_true", help="resend lost commands, as is ROS's default")
    parser.add_argument("--depth", type=int, default=10, help="commands kept for resending (%(default)s)")
    parser.add_argument("--raw", action="store_true", help="view image_raw instead of image_raw/compressed")
    words = parser.parse_args()
    impairment = Impairment(words.loss / 100, words.delay / 1000, words.rate * 1e6, seed=words.seed)
    plan = Plan(impairment, words.seconds, words.cut, words.depth, not words.reliable, words.raw)
    with tempfile.TemporaryDirectory() as scratch:
        try:
            trial = run_trial(plan, Path(scratch))
        except (MachinesError, ChildError) as error:
            print(error, file=sys.stderr)
            return 1
    print(trial.table())
    return 0


if __name__ == "__main__":
    sys.exit(main())
