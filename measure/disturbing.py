# SPDX-License-Identifier: Apache-2.0
"""Disturb the package's programs, and check the vehicles' commands and that the programs recover.

    soak     the vehicle's side becomes a broken peer (garbage, silence, floods ...) or ends, commands pause
    kills    SIGKILL at random moments, of the program or of a vehicle; bridges that die or hang and are not restarted
    kills_inside    SIGKILL of a bridge while it sends: its vehicle gets whole messages, and then neutral
    signals  SIGINT and SIGTERM at random moments, including the start
    stalls   SIGSTOP for 2 to 4 s while vehicles are commanded; the commands end meanwhile

Each disturbance is applied to all suitable programs: bridges, servers, web_bridge and the recorder. After each round
the next commands must drive all vehicles, and without commands they must be neutral. A round fails if a vehicle moved
without permission, or did not stop. Other faults are only reported: a program that does not drive within a minute, logs
a traceback, counts an internal error, sends data that its vehicle can't read, or grows.

Environment variables: MEASURE_ONLY, a regular expression for names of programs; MEASURE_ROUNDS, the number of rounds
for each; MEASURE_SEED, another seed. With MEASURE_BLOCKED=1 the output of the programs is not read, as in a terminal
after Ctrl-S.
"""

import contextlib
import os
import random
import re
import signal
import statistics
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from all_subjects import all_subjects
from programs import Usage
from relay import FLOOD
from step import DOMAINS, MOVED, OK
from subjects import (
    COMMAND_TIMEOUT_S,
    SILENT_IN_STALLS,
    START_TIMEOUT_S,
    BridgeSubject,
    MovedError,
    NotRecoveredError,
    Subject,
)

from drone_bridge.ros.process.shared_memory import make_room

MAX_SHOWN = 20  # problems; further ones are only counted
NEUTRAL_S = COMMAND_TIMEOUT_S + 2.0  # with a margin for a busy machine
END_S = 15.0  # from a signal to the exit
WATCHED_S = 3.5  # after a stall: Fast DDS repeats lost messages within 3 s
INTERRUPTED = 130  # exit status of an interrupted program in a shell
STARTING_S = 1.0  # period in which a program that has just started might move something
SETTLE_S = 30.0  # time for descriptors and threads to return to their number
GROWTH_KIB = 8 * 1024  # from the largest of the first third to the end


def left_behind(files: set[str]) -> list[str]:
    """Return the unused files in /dev/shm."""
    mapped = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            mapped |= {line.split()[-1] for line in maps.read_text().splitlines() if "/dev/shm/" in line}
    return sorted(name for name in files - mapped if os.path.exists(name))


def grown(usage: Sequence[Usage]) -> list[str]:
    """Return the resources in which a program has grown, from its use over time."""
    if not usage:
        return []
    first, last = usage[0], usage[-1]
    found = [
        f"{now - before} {what} more than at first"
        for what, before, now in (("descriptors", first[1], last[1]), ("threads", first[2], last[2]))
        if now > before
    ]
    growth_kib = last[0] - max(used[0] for used in usage[: max(2, len(usage) // 3)])
    if growth_kib > GROWTH_KIB:
        found.append(f"has grown by {growth_kib / 1024:.1f} MiB since the first third")
    return found


def is_from_pythons_start(output: str) -> bool:
    """Return whether the interrupt came before the program's first line, when the traceback lacks its modules."""
    is_interrupted = output.rstrip().endswith(("KeyboardInterrupt", "initialized")) or "init_import_site" in output
    return is_interrupted and not re.search(r"drone_bridge/\w+/[\w/]+\.py", output)


def spoil(subject: Subject, chance: random.Random, fault: str = "") -> float:
    """Turn the relays into broken peers for some seconds, with a random fault by default."""
    fault = fault or chance.choice(subject.faults)
    for vehicle in subject.vehicles:
        vehicle.relay.spoil(fault)
    time.sleep(chance.uniform(1.0, 6.0))
    for vehicle in subject.vehicles:
        vehicle.relay.heal()
    return subject.works_after(time.monotonic())


def restart_vehicle(
    subject: Subject, chance: random.Random, numbers: Sequence[signal.Signals] = (signal.SIGTERM, signal.SIGKILL)
) -> float:
    """Stop or kill an emulator, and start another one. The new vehicle must be left neutral, too."""
    number, vehicle = chance.choice(numbers), chance.choice(subject.vehicles)
    emulator = subject.emulators[vehicle]
    emulator.send(number)
    if emulator.wait() is None:
        raise NotRecoveredError("the emulator did not exit")
    time.sleep(chance.uniform(0.0, 3.0))
    started_s = time.monotonic()
    subject.start_emulator(vehicle)
    driven_s = vehicle.commands.wait(False, started_s, START_TIMEOUT_S)
    if driven_s is None:
        raise NotRecoveredError(f"the next vehicle was not driven within {START_TIMEOUT_S:g} s")
    pause(subject, chance)
    return driven_s - started_s


def pause(subject: Subject, chance: random.Random) -> float:
    """Pause the commands."""
    time.sleep(chance.uniform(0.0, 1.0))
    neutral_s = subject.becomes_neutral(subject.let_go(), NEUTRAL_S)
    subject.work()
    if neutral_s is None:
        raise MovedError(f"no neutral command within {NEUTRAL_S:g} s of the last command")
    return neutral_s


def kill(subject: Subject, chance: random.Random) -> float:
    """Kill the program. The next one sends neutral, or nothing, before it gets commands, and drives after that."""
    time.sleep(chance.uniform(0.0, 1.0))
    subject.check_left(subject.kill(), was_killed=True)
    subject.let_go()
    time.sleep(NEUTRAL_S)  # until vehicles with another commander get their commands
    started_s = time.monotonic()
    subject.start_program()
    took_s = subject.first_word_after(started_s)
    time.sleep(STARTING_S)
    moved_s = subject.moved_after(started_s)
    subject.work()
    if moved_s:
        raise MovedError("the restarted program moved the vehicle without a command")
    return took_s


def interrupt(subject: Subject, chance: random.Random) -> float:
    """Start the program and signal it. After its first output it must exit with 0, with neutral as its last command.

    Before that, while modules are imported, the signal itself may end it. Before its first line runs, Python prints a
    traceback.
    """
    if subject.program.is_running:
        subject.program.end()
    started_s = time.monotonic()
    program = subject.start_program()
    is_early = chance.random() < 0.4
    if not is_early:
        subject.command()
        subject.works_after(started_s)
    time.sleep(chance.uniform(0.0, 2.0 if is_early else 0.5))
    shared, has_spoken = program.shared_memory(), bool(program.output)
    signalled_s, signalled_ns = time.monotonic(), time.time_ns()
    for _ in range(2 if chance.random() < 0.3 else 1):
        program.send(chance.choice((signal.SIGINT, signal.SIGTERM)))
        time.sleep(chance.uniform(0.0, 0.02))
    status = program.wait(END_S)
    took_s = time.monotonic() - signalled_s
    if status is None:
        wrong = f"still running after {END_S:g} s, {program.signals()}: {program.output[-1500:]}"
        program.end()
        raise NotRecoveredError(wrong)
    if not is_early:
        subject.check_left(signalled_ns, was_killed=False)
    _judge_end(subject, status, has_spoken, started_s, shared)
    return took_s


def _judge_end(subject: Subject, status: int, has_spoken: bool, started_s: float, shared: set[str]) -> None:
    """Raise NotRecoveredError if it did not exit properly."""
    program = subject.program
    if not has_spoken and is_from_pythons_start(program.output):
        return
    is_by_signal = not has_spoken and status in (-signal.SIGINT, -signal.SIGTERM, INTERRUPTED)
    if not subject.speaks_itself:  # the vehicle's bridge has to detect it first
        subject.becomes_neutral(time.monotonic(), NEUTRAL_S)
    said = [log.since(started_s) for log in subject.logs]
    left = [file for file in left_behind(shared) if "_port" not in file]  # Fast DDS keeps those for the next user
    if any(each and not each[-1][1] for each in said):
        raise MovedError(f"its last command was not neutral; status {status}")
    for is_wrong, sentence in (
        (status != 0 and not is_by_signal, f"exited with {status}: {program.output[-1500:]}"),
        ("Traceback" in program.output, f"a traceback: {program.output[-1500:]}"),
        (bool(left), f"left {', '.join(left)}"),
    ):
        if is_wrong:
            raise NotRecoveredError(sentence)


def stall(subject: Subject, chance: random.Random) -> float:
    """Suspend the program. Its queues then contain stale commands, which must not move the vehicle."""
    if not all(log.is_moving for log in subject.logs):
        subject.work()
    time.sleep(chance.uniform(0.0, 0.5))
    subject.program.send(signal.SIGSTOP)
    try:
        time.sleep(chance.uniform(2.0, 4.0) - COMMAND_TIMEOUT_S)
        subject.let_go()
        time.sleep(COMMAND_TIMEOUT_S)
        resumed_s = time.monotonic()
    finally:
        subject.program.send(signal.SIGCONT)
    time.sleep(WATCHED_S)
    moved_s = sorted(subject.moved_after(resumed_s))
    took_s = subject.work()
    if moved_s:
        span = f"{moved_s[0]:.3f} to {moved_s[-1]:.3f} s after the stop"
        raise MovedError(f"{len(moved_s)} stale commands moved the vehicle {span}")
    return took_s


def stopped_after(number: signal.Signals, subject: Subject, chance: random.Random, *, inside: bool = False) -> float:
    """Signal a bridge that drives its vehicle. Return the time until its first neutral command.

    On a busy machine, late commands may have made it neutral just before: then it is silent. `inside`: upon the arrival
    of a message, or up to 2 ms later, when the bridge may still be in the call that sends it, or be at the next one.
    """
    (log,) = subject.logs
    time.sleep(chance.uniform(0.0, 0.5))
    if not log.is_moving:
        subject.work()
    unread = len(log.malformed)
    if inside:
        if log.wait(False, time.monotonic(), COMMAND_TIMEOUT_S) is None:  # a command is sent once, when it changes
            subject.becomes_neutral(subject.let_go(), NEUTRAL_S)
            subject.work()
        time.sleep(chance.choice((0.0, chance.uniform(0.0, 0.002))))
    signalled_s = time.monotonic()
    subject.program.send(number)
    try:
        neutral_s = log.wait(True, signalled_s, NEUTRAL_S)
        if log.is_moving:
            raise MovedError(f"not neutral {NEUTRAL_S:g} s after {number.name}")
        if log.malformed[unread:]:
            raise MovedError(f"after {number.name}, its vehicle can't read {log.malformed[unread]}")
    finally:
        if number == signal.SIGSTOP:
            subject.program.send(signal.SIGCONT)
        else:
            subject.program.wait()
            make_room()
            subject.start_program()
        subject.works_after(time.monotonic())
    return 0.0 if neutral_s is None else neutral_s - signalled_s


@dataclass(frozen=True)
class Disturbance:
    """Disturbance of a program."""

    what: str
    do: Callable[[Subject, random.Random], float]  # returns the recovery time, s; raises NotRecoveredError
    suits: Callable[[Subject], bool] = lambda subject: True


def _has_relays(subject: Subject) -> bool:
    return bool(subject.faults)


def _is_bridge(subject: Subject) -> bool:
    return subject.family == BridgeSubject.family and len(subject.logs) == 1


SPOIL = Disturbance("its peers send garbage, trickle, flood, fall silent or disappear", spoil, _has_relays)
#: First round of a soak. A link starts a thread, which stays, with the first peer that it disconnects itself.
FIRST_SPOIL = Disturbance(SPOIL.what, partial(spoil, fault=FLOOD), _has_relays)
RESTART = Disturbance("a vehicle exits or is killed, and another one starts", restart_vehicle, _has_relays)
PAUSE = Disturbance("commands pause", pause, lambda subject: bool(subject.logs))
KILL_VEHICLE = Disturbance(
    "a vehicle is killed, and another one starts", partial(restart_vehicle, numbers=(signal.SIGKILL,)), _has_relays
)
KILL = Disturbance("it is killed and restarted", kill)
SIGNAL = Disturbance("SIGINT or SIGTERM, once or twice, including its start", interrupt)
STALL = Disturbance("it is suspended for 2 to 4 s while it is commanded", stall)
DEATHS = tuple(
    Disturbance(f"{number.name}, without a launch file", partial(stopped_after, number), _is_bridge)
    for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGALRM, signal.SIGHUP, signal.SIGQUIT)
)
HANG = Disturbance(
    "SIGSTOP, `command_timeout` 0.5 s",
    partial(stopped_after, signal.SIGSTOP),
    lambda subject: _is_bridge(subject) and subject.vehicles[0].kind.name not in SILENT_IN_STALLS,
)
INSIDE = Disturbance("SIGKILL while it sends", partial(stopped_after, signal.SIGKILL, inside=True), _is_bridge)
CAMPAIGNS = {
    "soak": (SPOIL, SPOIL, SPOIL, RESTART, PAUSE),
    "kills": (KILL_VEHICLE, KILL, *DEATHS, HANG),
    "kills_inside": (INSIDE,),
    "signals": (SIGNAL,),
    "stalls": (STALL,),
}


class Tally:
    """Results of the rounds."""

    def __init__(self) -> None:
        self.took_s: dict[tuple[str, str], list[float]] = {}
        """Recovery times, by subject and disturbance"""
        self.failed: Counter[tuple[str, str]] = Counter()
        """By subject and disturbance"""
        self.moved = 0
        """Number of vehicles that moved without permission or did not stop, or of failures of the campaign"""
        self.faults = 0
        """Number of other faults"""
        self._changing = threading.Lock()

    @property
    def count(self) -> int:
        return sum(map(len, self.took_s.values())) + sum(self.failed.values())

    def add(self, name: str, what: str, took_s: float) -> None:
        with self._changing:
            self.took_s.setdefault((name, what), []).append(took_s)

    def fail(self, name: str, what: str, error: Exception) -> None:
        """Record a failure of a round, or of a subject's whole life if `what` is empty."""
        is_fault = isinstance(error, NotRecoveredError) and not isinstance(error, MovedError)
        sentence = str(error) if isinstance(error, NotRecoveredError) else repr(error)
        with self._changing:
            self.failed[name, what] += 1
            self.faults += is_fault
            self.moved += not is_fault
            if self.moved + self.faults <= MAX_SHOWN:
                kind = "fault" if is_fault else "MOVED" if isinstance(error, MovedError) else "CRASHED"
                print(f"{kind}: {name}, {time.strftime('%H:%M:%S')}, {what or 'in the end'}: {sentence}", flush=True)

    @property
    def slowest_s(self) -> float:
        """Longest recovery time."""
        return max((max(times_s) for times_s in self.took_s.values()), default=0.0)

    def table(self, campaign: str, families: Callable[[str], str]) -> str:
        """Return a Markdown table of disturbances by family of programs, with their failures."""
        lines = ["| disturbance | step | rounds | failed | recovery: median, slowest |", "|---|---|---|---|---|"]
        for what in dict.fromkeys(each.what for each in CAMPAIGNS[campaign]):
            took_s = {name: times_s for (name, done), times_s in self.took_s.items() if done == what}
            failed = {name: count for (name, done), count in self.failed.items() if done == what}
            rounds: Counter[str] = Counter()
            for name, count in (*((name, len(times_s)) for name, times_s in took_s.items()), *failed.items()):
                rounds[families(name)] += count
            if rounds:
                how_often = ", ".join(f"{family} {count}" for family, count in rounds.items())
                all_s = [each for times_s in took_s.values() for each in times_s] or [0.0]
                times = f"{statistics.median(all_s):.2f} s, {max(all_s):.2f} s"
                cells = (what, f"`{campaign}`", how_often, str(sum(failed.values())), times)
                lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Plan:
    """Disturbances of each program: number of rounds, or a duration."""

    campaign: str
    rounds: int = 0
    seconds: float = 0.0
    at_once: int = 2  # number of concurrent programs


class Campaign:
    """Rounds with several concurrent subjects, each from its start to its end."""

    def __init__(self, plan: Plan, scratch: Path) -> None:
        self.tally = Tally()
        self._plan, self._scratch = plan, scratch
        self._rounds = int(os.environ.get("MEASURE_ROUNDS", plan.rounds))
        self._seed = os.environ.get("MEASURE_SEED", "1")
        only = os.environ.get("MEASURE_ONLY", "")
        makers = {name: make for name, make in all_subjects().items() if re.search(only, name)}
        if not makers:
            raise ValueError(f"No program matches {only!r}. The programs are {', '.join(all_subjects())}.")
        domains = random.SystemRandom().sample(DOMAINS, len(makers))
        self._waiting = deque(zip(makers.items(), domains, strict=True))
        self._families: dict[str, str] = {}

    def run(self) -> Tally:
        """Disturb all subjects, and return the results."""
        with ThreadPoolExecutor(self._plan.at_once) as pool:
            for _ in range(self._plan.at_once):
                pool.submit(self._work)
        return self.tally

    def table(self) -> str:
        """Return the results as a Markdown table."""
        return self.tally.table(self._plan.campaign, self._families.__getitem__)

    def _work(self) -> None:
        """Disturb one subject at a time."""
        while True:
            try:
                (name, make), domain = self._waiting.popleft()
            except IndexError:
                return
            folder = self._scratch / name
            folder.mkdir()
            subject = make(domain, folder)
            subject.is_output_blocked = os.environ.get("MEASURE_BLOCKED") == "1"
            self._families[name] = subject.family
            suited = [each for each in CAMPAIGNS[self._plan.campaign] if each.suits(subject)]
            try:
                if suited:
                    subject.start()
                    subject.work()
                    self._disturb(subject, suited)
            except Exception as error:  # continue with the others
                self.tally.fail(name, "", error)
            finally:
                subject.close()

    def _disturb(self, subject: Subject, suited: Sequence[Disturbance]) -> None:
        """Run a subject's rounds, and check its state."""
        usage, number = list[Usage](), 0
        is_watched = self._plan.campaign == "soak"  # in which one process lives from the first round to the last
        end_s = time.monotonic() + self._plan.seconds
        while number < self._rounds if self._rounds else time.monotonic() < end_s:
            chance = random.Random(f"{self._seed} {subject.name} {number}")
            what = chance.choice(suited) if is_watched else suited[number % len(suited)]
            if is_watched and not number and FIRST_SPOIL.suits(subject):
                what = FIRST_SPOIL
            number += 1
            try:
                self.tally.add(subject.name, what.what, what.do(subject, chance))
            except Exception as error:  # continue with the other rounds
                self.tally.fail(subject.name, what.what, error)
            if is_watched:
                usage.append(subject.program.usage())
        settled_s = time.monotonic() + SETTLE_S
        while grown(usage) and time.monotonic() < settled_s:
            time.sleep(1.0)
            usage.append(subject.program.usage())
        self._judge(subject, usage)

    def _judge(self, subject: Subject, usage: Sequence[Usage]) -> None:
        """Check the state that a subject leaves."""
        if usage:
            kib = [allocated for allocated, _, _ in usage]
            sizes = f"{kib[0] / 1024:.1f} MiB, {max(kib) / 1024:.1f} at most, {kib[-1] / 1024:.1f} now"
            print(f"{subject.name}: allocated {sizes}", flush=True)
        wrong = grown(usage)
        wrong += [f"sent what its vehicle can't read: {each}" for log in subject.logs for each in log.malformed]
        if internal := subject.counts.get("internal_errors", 0):
            wrong.append(f"{internal} internal errors in its diagnostics")
        program = subject.program
        if program.is_running and (status := program.end()) != 0:
            wrong.append(f"exited with {status}")
        if "Traceback" in program.output and not is_from_pythons_start(program.output):
            wrong.append(f"a traceback: {program.output.partition('Traceback')[2][:1500]}")
        for sentence in wrong:
            self.tally.fail(subject.name, "", NotRecoveredError(sentence))


def run(plan: Plan) -> int:
    """Run a campaign, print its table and summary, and return the status of a step."""
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        campaign = Campaign(plan, Path(scratch))
        tally = campaign.run()
    print(campaign.table())
    wrong = f"moved or did not stop in {tally.moved}, other faults {tally.faults}"
    ended = f"{tally.count} rounds in {time.monotonic() - began_s:.0f} s: {wrong}"
    print(f"{ended}, slowest recovery {tally.slowest_s:.1f} s")
    return MOVED if tally.moved else OK
