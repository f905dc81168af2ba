# SPDX-License-Identifier: Apache-2.0
"""Several machines on one: a bridge next to its vehicle, an operator and viewer on others, a bad link, pulled cables.

The machines are network namespaces, so that all times are from one clock. A link is cut, and restored, without a
notification at either end. See docs/deploy.md.
"""

import contextlib
import itertools
import os
import re
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ament_index_python.packages import get_package_share_directory
from impaired_link import Impairment, two_machines_far_apart
from machines import DEVICE, Machine, MachinesError, configure, ip, namespaces, two_machines
from ports import free_port
from processes import Process, executable
from ros_session import wait_until
from step import NotHereError, Verdict

HERE = Path(__file__).resolve().parent
PROBE = HERE.parent / "test" / "support" / "reach_probe.py"
SWITCH = "switch"  # device in the namespace of the switch
PROFILE = Path(get_package_share_directory("drone_bridge"), "config", "fastdds.xml")
REACH = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET", "FASTDDS_DEFAULT_PROFILES_FILE": str(PROFILE)}
COMMAND_TIMEOUT_S = 0.5
FRAMES_PER_S = 40.0
COMMANDS_PER_S = 20.0
#: As in hosts_operator.py, which numbers its commands by their roll rate, degrees/s.
FIRST_ROLL_RATE = 1000
#: Margin beyond `command_timeout` before a vehicle counts as not stopped, for a busy machine.
SCHEDULING_S = 1.5
PERIOD_S = 0.05  # polling period of the programs' output
#: Long enough for the kernel to give up a lost machine, forget that, and resolve it again.
LOST_S = 6.0
#: Duration of a suspension of the bridge.
SUSPENDED_S = 2.0
MOTORS = re.compile(r"motors (\S+) (\S+)")
#: Data sent just before the cut may not have arrived.
ON_ITS_WAY_S = 1.0


@contextlib.contextmanager
def three_machines() -> Iterator[tuple[Machine, Machine, Machine]]:
    """Create three machines at one switch. Raises MachinesError if not permitted.

    The other machines are not notified when a cable is unplugged.
    """
    with namespaces(3, switches=1) as (switch, *machines):
        made = ip("-n", switch.name, "link", "add", SWITCH, "type", "bridge", check=False)
        if made.returncode:
            raise MachinesError(f"A switch can't be made here: {made.stderr.strip()}")
        ip("-n", switch.name, "link", "set", SWITCH, "up")
        for number, machine in enumerate(machines):
            port = f"port{number}"
            cable = ("-n", machine.name, "link", "add", DEVICE, "type", "veth")
            ip(*cable, "peer", "name", port, "netns", switch.name)
            ip("-n", switch.name, "link", "set", port, "master", SWITCH, "up")
        configure(*machines)
        one, other, third = machines
        yield one, other, third


@dataclass(frozen=True, slots=True)
class Plan:
    """Settings of a trial."""

    seconds: float = 20.0  # of measurement before the cut
    cut_s: float = 3.0
    is_best_effort: bool = True  # subscription of the bridge to commands


@dataclass(frozen=True, slots=True)
class Answer:
    """Vehicle's command after a frame; times in s since 1970."""

    frame_s: float
    time_s: float
    roll_rate: float  # degrees/s

    @property
    def command(self) -> int | None:
        """Number of the command that it follows; None for the neutral one."""
        return round(self.roll_rate) - FIRST_ROLL_RATE if self.roll_rate >= FIRST_ROLL_RATE else None


@dataclass(frozen=True, slots=True)
class Image:
    """Image that reached the viewer; times in s since 1970."""

    stamp_s: float
    arrived_s: float
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Trial:
    """Observations of a trial; times in s since 1970."""

    began_s: float
    cut_s: float
    mended_s: float
    commands: dict[int, float]  # publication times
    answers: list[Answer]
    images: list[Image]
    refused: int  # commands, by the bridge's diagnostics
    # In both directions:
    packets_arrived: int
    packets_lost: int
    packets_dropped: int  # by a full queue

    def is_measured(self, moment_s: float) -> bool:
        """Return whether an item sent at this time counts for latencies and losses."""
        return self.began_s <= moment_s < self.cut_s - ON_ITS_WAY_S

    @property
    def command_ages_s(self) -> dict[int, float]:
        """Age of each command when it first reached the vehicle, by number."""
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
        """Share of commands that never reached the vehicle."""
        given = sum(self.is_measured(given_s) for given_s in self.commands.values())
        return 1 - len(self.command_latencies_s) / max(1, given)

    @property
    def image_latencies_s(self) -> list[float]:
        """Times from the frame's arrival at the bridge to the viewer's callback."""
        return [image.arrived_s - image.stamp_s for image in self.images if self.is_measured(image.stamp_s)]

    @property
    def image_loss(self) -> float:
        """Share of frames whose image never reached the viewer."""
        frames = sum(self.is_measured(answer.frame_s) for answer in self.answers)
        return 1 - len(self.image_latencies_s) / max(1, frames)

    @property
    def neutral_after_s(self) -> float:
        """Time from the cut until the vehicle got a neutral command."""
        return (
            next(answer.time_s for answer in self.answers if answer.time_s > self.cut_s and answer.command is None)
            - self.cut_s
        )

    @property
    def commanded_after_s(self) -> float:
        """Time from restoring the link until the vehicle followed a command."""
        return (
            next(answer.time_s for answer in self.answers if answer.time_s > self.mended_s and answer.command)
            - self.mended_s
        )

    @property
    def viewed_after_s(self) -> float:
        """Time from restoring the link until a new image arrived."""
        return next(image.arrived_s for image in self.images if image.stamp_s > self.mended_s) - self.mended_s

    @property
    def stops(self) -> int:
        """Number of times that the vehicle became neutral for lack of commands while the link was up."""
        told = [answer.command for answer in self.answers if self.is_measured(answer.frame_s)]
        return sum(now is None and before is not None for before, now in itertools.pairwise(told))

    def table(self) -> str:
        """Return the figures as a Markdown table."""
        size_kb = sum(image.size_bytes for image in self.images) / len(self.images) / 1000
        seconds = self.cut_s - ON_ITS_WAY_S - self.began_s
        oldest_s = max(self.command_ages_s.values())
        rows = {
            "command latency, operator to vehicle": percentiles(self.command_latencies_s),
            "commands that never reached the vehicle": f"{100 * self.command_loss:.1f} %",
            "times it went neutral for lack of commands": f"{self.stops} in {seconds:.0f} s",
            "oldest command executed": f"{oldest_s:.2f} s",
            "commands refused as stale": f"{self.refused}",
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
    """Return the median and the 99th percentile as text."""
    if not values_s:
        return "none came"
    ordered = sorted(values_s)
    return f"p50 {1000 * ordered[len(ordered) // 2]:.0f} ms, p99 {1000 * ordered[99 * len(ordered) // 100]:.0f} ms"


class Programs:
    """Programs on some machines, which end before the machines do."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack

    def start(self, machine: Machine, *command: object, **environment: str) -> Any:
        """Start a program on a machine; the stack stops it."""
        process = Process(*machine.command(*command), env={**REACH, **environment})
        self._stack.callback(process.end)
        return process

    def start_vehicle(self, machine: Machine, **parameters: object) -> tuple[Any, Any]:
        """Start a testbed and its bridge on one machine; return both."""
        vehicle = self.start(machine, sys.executable, HERE / "hosts_vehicle.py", FRAMES_PER_S)
        port = vehicle.wait_for_line(r"^(\d+)$")[1]
        return vehicle, self.start(machine, *bridge("testbed_bridge", port=port, **parameters))

    def start_operator(self, machine: Machine, robot: Machine, *options: object) -> Any:
        """Start the operator and viewer of a vehicle on another machine."""
        command = (sys.executable, HERE / "hosts_operator.py", COMMANDS_PER_S, *options)
        return self.start(machine, *command, ROS_STATIC_PEERS=robot.address)


def bridge(name: str, **parameters: object) -> list[str]:
    """Return the command line of a bridge."""
    given = {"command_timeout": COMMAND_TIMEOUT_S, **parameters}
    return [
        executable(name),
        "--ros-args",
        *(word for key, value in given.items() for word in ("-p", f"{key}:={value}")),
    ]


def wait_for_answer(vehicle: Any, is_it: Callable[[Answer], bool], what: str) -> None:
    """Wait for such a command to the vehicle."""
    wait_until(lambda: any(map(is_it, read_answers(list(vehicle.lines)))), what, period_s=PERIOD_S)


def wait_for_command(vehicle: Any, since_s: float = 0.0, when: str = "") -> None:
    """Wait until the vehicle follows a command after a time."""
    is_followed = lambda answer: answer.time_s > since_s and answer.command is not None  # noqa: E731
    wait_for_answer(vehicle, is_followed, f"a command to be followed{when}")


def wait_for_operator(operator: Any, word: str, is_it: Callable[[list[float]], bool], what: str) -> None:
    """Wait for such a line with this word."""
    wait_until(lambda: any(map(is_it, read_lines(word, list(operator.lines)))), what, period_s=PERIOD_S)


def read_answers(lines: list[str]) -> Iterator[Answer]:
    """Parse the vehicle's output; its first line is its port."""
    return (Answer(*map(float, line.split())) for line in lines[1:])


def read_lines(word: str, lines: list[str]) -> Iterator[list[float]]:
    """Parse the operator's lines that begin with a word."""
    return (list(map(float, line.split()[1:])) for line in lines if line.startswith(f"{word} "))


def run_trial(plan: Plan) -> Trial:
    """Measure, cut the link, restore it, and wait for recovery. Raises MachinesError."""
    with contextlib.ExitStack() as stack:
        robot, laptop, link = stack.enter_context(two_machines_far_apart(Impairment()))
        programs = Programs(stack)
        reliability = {"qos_overrides./cmd_rates.subscription.reliability": "reliable"}
        vehicle, _ = programs.start_vehicle(robot, **({} if plan.is_best_effort else reliability))
        operator = programs.start_operator(laptop, robot)
        wait_for_command(vehicle)
        wait_for_operator(operator, "image", lambda _: True, "an image")
        began_s = time.time()
        until_s = began_s + plan.seconds
        wait_for_operator(operator, "command", lambda command: command[1] > until_s, "the time before the cut")
        link.cut()
        cut_s = time.time()
        is_neutral = lambda answer: answer.time_s > cut_s and answer.command is None  # noqa: E731
        wait_for_answer(vehicle, is_neutral, "the neutral command after the cut")
        wait_for_operator(operator, "command", lambda command: command[1] > cut_s + plan.cut_s, "the end of the cut")
        link.mend()
        mended_s = time.time()
        wait_for_operator(operator, "image", lambda image: image[0] > mended_s, "an image after the cut")
        wait_for_command(vehicle, mended_s, " after the cut")
        heard = operator.count_lines("^refused")
        operator.wait_for_count("^refused", heard + 1)
        answers, said = list(vehicle.lines), list(operator.lines)
        directions = link.directions
    return Trial(
        began_s,
        cut_s,
        mended_s,
        commands={int(number): given_s for number, given_s in read_lines("command", said)},
        answers=list(read_answers(answers)),
        images=[Image(stamp_s, arrived_s, int(size)) for stamp_s, arrived_s, size in read_lines("image", said)],
        refused=int(list(read_lines("refused", said))[-1][0]),
        packets_arrived=sum(direction.arrived for direction in directions),
        packets_lost=sum(direction.lost for direction in directions),
        packets_dropped=sum(direction.dropped for direction in directions),
    )


def judge_trial(verdict: Verdict, name: str, plan: Plan) -> float:
    """Run a trial, print its table, and record late motion; return the time to stop after a cut, s."""
    trial = run_trial(plan)
    print(f"{name}:\n{trial.table()}")
    allowed_s, oldest_s = COMMAND_TIMEOUT_S + SCHEDULING_S, max(trial.command_ages_s.values())
    verdict.stopped(oldest_s < allowed_s, f"a command that was {oldest_s:.2f} s old was followed")
    verdict.stopped(trial.neutral_after_s < allowed_s, f"neutral {trial.neutral_after_s:.2f} s after a cut")
    verdict.figure(f"{name}: commands {percentiles(trial.command_latencies_s)}, the oldest followed {oldest_s:.2f} s")
    return trial.neutral_after_s


def pull_the_cable(verdict: Verdict) -> float:
    """Pull the cable between a robot and its operator, which both ends can detect; return its time to stop, s."""
    with contextlib.ExitStack() as stack:
        ours, theirs = stack.enter_context(two_machines())
        programs, port = Programs(stack), free_port()
        command = (executable("robot_emulator"), "--port", port, "--no-discovery", "--verbose")
        emulator = programs.start(ours, *command)
        emulator.wait_for_line("listening on")
        programs.start(ours, *bridge("robot_bridge", port=port))
        # The operator knows the address, so no multicast is needed.
        peers = {"FASTDDS_DEFAULT_PROFILES_FILE": "", "ROS_STATIC_PEERS": ours.address}
        programs.start(theirs, sys.executable, PROBE, "drive", **peers)

        def is_moving() -> bool:
            changes = MOTORS.findall(emulator.output)
            return bool(changes) and {float(speed) for speed in changes[-1]} != {0.0}

        wait_until(is_moving, "the robot to be driven")
        ours.cable("down")
        cut_s = time.monotonic()
        wait_until(lambda: not is_moving(), "the robot to stop")
        stopped_s = time.monotonic() - cut_s
        ours.cable("up")
        mended_s = time.monotonic()
        wait_until(is_moving, "the robot to be driven again")
        again_s = time.monotonic() - mended_s
    verdict.stopped(stopped_s < COMMAND_TIMEOUT_S + SCHEDULING_S, f"the robot drove on for {stopped_s:.2f} s")
    verdict.figure(f"cable: the robot stops after {stopped_s:.2f} s, and drives {again_s:.2f} s after it is back")
    return stopped_s


def lose_a_viewer(verdict: Verdict, *, commanding_too: bool) -> float:
    """Lose the machine of the viewer, or also that of the operator, behind a switch that does not report it.

    Return the time of the neutral command, s, or else the time within which frames are answered.
    """
    with contextlib.ExitStack() as stack:
        ours, commanding, looking = stack.enter_context(three_machines())
        # Each unresolved address has its own queue, and two of them fill the send buffer of a socket.
        looking.add_address("10.213.7.103")
        programs = Programs(stack)
        vehicle, _ = programs.start_vehicle(ours)
        operator = programs.start_operator(commanding, ours)
        looker = programs.start(looking, sys.executable, PROBE, "look", "left/image_raw", ROS_STATIC_PEERS=ours.address)
        looker.wait_for_count("seen", 20)
        operator.wait_for_count("image", 20)
        wait_for_command(vehicle)
        cut_s = time.time()
        for lost in (looking, commanding) if commanding_too else (looking,):
            lost.cable("down")
            ours.forget(lost)
        until_s = cut_s + LOST_S
        wait_for_answer(vehicle, lambda answer: answer.frame_s > until_s, "the frames of that time")
        answers = [each for each in read_answers(list(vehicle.lines)) if cut_s <= each.frame_s < until_s]
        if not commanding_too:
            wait_for_operator(operator, "image", lambda image: image[0] > until_s, "the images of that time")
        stamps = [stamp_s for stamp_s, *_ in read_lines("image", list(operator.lines))]
    if commanding_too:
        neutral_s = next((each.time_s - cut_s for each in answers if each.command is None), LOST_S)
        later = [each for each in answers if each.time_s > cut_s + neutral_s and each.command]
        verdict.stopped(neutral_s < COMMAND_TIMEOUT_S + SCHEDULING_S, f"neutral {neutral_s:.2f} s after both were lost")
        verdict.stopped(not later, f"{len(later)} commands after the neutral one")
        return neutral_s
    longest_s = max(each.time_s - each.frame_s for each in answers)
    typical_s = statistics.median(each.time_s - each.frame_s for each in answers)
    neutral = sum(each.command is None for each in answers)
    seen = sum(cut_s <= stamp_s < until_s for stamp_s in stamps)
    answered = f"frames are answered within {longest_s:.3f} s, half of them within {1000 * typical_s:.1f} ms"
    verdict.figure(f"viewer lost: {answered}, {neutral} of {len(answers)} are neutral, {seen} images are seen")
    return longest_s


def suspend_the_bridge(verdict: Verdict, times: int) -> None:
    """Suspend a bridge while another machine commands it: no command that waited meanwhile may be followed.

    The commands have no stamps, so only the bridge's own stall shows that they are stale.
    """
    resumed_s: list[float] = []
    with contextlib.ExitStack() as stack:
        robot, laptop, _ = stack.enter_context(two_machines_far_apart(Impairment()))
        programs = Programs(stack)
        vehicle, suspended = programs.start_vehicle(robot)
        operator = programs.start_operator(laptop, robot, "--unstamped")
        wait_for_command(vehicle)
        for _ in range(times):
            suspended.send(signal.SIGSTOP)
            time.sleep(SUSPENDED_S)
            resumed_s.append(time.time())
            suspended.send(signal.SIGCONT)
            wait_for_command(vehicle, resumed_s[-1])
        answers = list(read_answers(list(vehicle.lines)))
        given_s = {int(number): at_s for number, at_s in read_lines("command", list(operator.lines))}
    commands_s = [(answer.time_s, given_s[answer.command]) for answer in answers if answer.command is not None]
    waited_s = [time_s - at_s for at_s in resumed_s for time_s, given in commands_s if given < at_s < time_s]
    again_s = [min(time_s for time_s, _ in commands_s if time_s > at_s) - at_s for at_s in resumed_s]
    verdict.stopped(not waited_s, f"{len(waited_s)} commands from before the end of a stop were followed")
    followed = f"new ones are followed after {min(again_s):.2f} to {max(again_s):.2f} s"
    verdict.figure(f"bridge suspended {times} times for {SUSPENDED_S:g} s: {len(waited_s)} old commands, {followed}")


def main(short: bool) -> int:
    """Run all trials, as root."""
    if os.environ.get("ROS_DISTRO") == "humble" or "fastrtps" not in os.environ.get(
        "RMW_IMPLEMENTATION", "rmw_fastrtps"
    ):
        raise NotHereError("Static peers need Iron or newer, and the profile is for Fast DDS.")
    plans = (
        {"bad link": Plan(seconds=5.0)}
        if short
        else {
            "bad link": Plan(),
            "bad link, reliable": Plan(is_best_effort=False),
            "bad link, cut for 30 s": Plan(seconds=5.0, cut_s=30.0),
        }
    )
    verdict = Verdict()
    try:
        stops_s = {"a pulled cable": pull_the_cable(verdict)}
        lose_a_viewer(verdict, commanding_too=False)
        suspend_the_bridge(verdict, times=3 if short else 20)
        stops_s["a lost viewer and operator"] = lose_a_viewer(verdict, commanding_too=True)
        for name, plan in plans.items():
            stops_s[f"a cut {name}"] = judge_trial(verdict, name, plan)
    except MachinesError as error:
        raise NotHereError(str(error)) from error
    verdict.figure("neutral after " + ", ".join(f"{name} {stop_s:.2f} s" for name, stop_s in stops_s.items()))
    return verdict.status
