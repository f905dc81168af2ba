# SPDX-License-Identifier: Apache-2.0
"""Command line options and option types of emulators and operators.

Option types raise ArgumentTypeError, which argparse turns into a usage message.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

T = TypeVar("T")
KindT = TypeVar("KindT", bound=Enum)


#: Option in launch files: the end of this program ends the whole launch. It is read by the launcher, in
#: launch/parts/ends_launch.launch.py and tools/launch/evaluate.py, since humble lacks the attribute on_exit in XML.
ENDS_LAUNCH = "--ends-launch"
#: Ends of the names of executables whose launch ends if they can't start, for the same readers.
NEEDED_BY_LAUNCH = ("_controller", "_emulator")


class ProgramParser(argparse.ArgumentParser):
    """Command line of one program, with its name as it was started."""

    def __init__(self, kind: str, name: str, what: str, ends: str) -> None:
        """Declare the common options.

        Args:
            kind: verb of the `drone-bridge` command, emulate or operate.
            name: name of the program, after that verb.
            what: description.
            ends: condition on which it ends by itself.
        """
        what += " Or a wire log as one, by --replay FILE." * (kind == "emulate")
        super().__init__(
            prog=_started_as(kind, name),
            usage="%(prog)s [options]",
            description=f"{what} Exits with 0 on SIGINT, SIGTERM or {ends}, and with 2 if it can't start.",
            epilog="example: %(prog)s " + {"emulate": "--duration 60", "operate": "--plan '4s forward 0.5'"}[kind],
        )
        self.add_argument(
            ENDS_LAUNCH, action="store_true", help="for launch files: end the whole launch when this program ends"
        )


def _started_as(kind: str, name: str) -> str:
    """Return the command that started the program, for usage messages."""
    if spec := sys.modules["__main__"].__spec__:
        return f"python3 -m {spec.name.removesuffix('.__main__')}"
    started = Path(sys.argv[0]).name
    whole = {"drone-bridge": f"drone-bridge {kind} {name}", "robot_class_emulator": f"robot_class_emulator {name}"}
    return whole.get(started, started)


def add_peer(group: Any, default_port: int, whose: str) -> None:
    """Add --host and --port of the peer."""
    group.add_argument("--host", default="127.0.0.1", help=f"address of {whose} (%(default)s)")
    group.add_argument("--port", type=port, default=default_port, help=f"port of {whose} (%(default)s)")


def add_address(group: Any, default_port: int, purpose: str = "to listen on") -> None:
    """Add --host and --port to listen on."""
    group.add_argument("--host", default="127.0.0.1", help=f"{purpose} (%(default)s)")
    group.add_argument("--port", type=port, default=default_port, help="0 picks a free one (%(default)s)")


def add_choice(group: Any, flag: str, default: Enum, what: str, **more: Any) -> None:
    """Add an option with the values of an enumeration. `more` is passed to `add_argument`."""
    kinds = type(default)
    words = "|".join(str(kind.value) for kind in kinds)
    group.add_argument(
        flag, type=one_of(kinds), default=default, metavar=words, help=f"{what} ({default.value})", **more
    )


def add_flag(group: Any, flag: str, meaning: str) -> None:
    """Add an option without a value."""
    group.add_argument(flag, action="store_true", help=meaning)


def add_word(group: Any, flag: str, words: Sequence[str], meaning: str) -> None:
    """Add an option with one of several words, by default the first one."""
    group.add_argument(flag, choices=words, default=words[0], help=f"{meaning} (%(default)s)")


def add_number(group: Any, flag: str, default: float, meaning: str, of: Callable[[str], float] | None = None) -> None:
    """Add a numeric option, above 0 unless the type `of` allows others."""
    group.add_argument(flag, type=of or positive, default=default, help=f"{meaning} (%(default)s)")


def add_run(
    parser: argparse.ArgumentParser, *, duration: str, seed_of: str | None = None, rate: tuple[float, str] | None = None
) -> Any:
    """Add and return the options of a run: --duration, --trajectory, and others where applicable.

    `duration`: unit of --duration; `seed_of`: subject of --seed; `rate`: default and help of --rate.
    """
    group = parser.add_argument_group("run")
    if seed_of is not None:
        group.add_argument("--seed", type=count, default=0, help=f"random seed of {seed_of} (%(default)s)")
    if rate is not None:
        group.add_argument("--rate", type=positive, default=rate[0], help=f"{rate[1]} (%(default)s)")
    group.add_argument("--duration", type=not_negative, help=f"stop after this time, in {duration}")
    group.add_argument("--trajectory", metavar="FILE.csv", help="write each state of the vehicle to this file")
    return group


def port(text: str) -> int:
    """Parse a port number."""
    value = count(text)
    if value > 65535:
        raise argparse.ArgumentTypeError(f"must be at most 65535, not {text}")
    return value


def count(text: str) -> int:
    """Parse a non-negative integer."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"must not be below 0, not {text}")
    return value


def triple(text: str) -> tuple[float, float, float]:
    """Parse 'x y z'."""
    try:
        x, y, z = map(float, text.split())
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be three numbers, not {text!r}") from error
    if not all(map(math.isfinite, (x, y, z))):
        raise argparse.ArgumentTypeError(f"must be finite, not {text!r}")
    return x, y, z


def read_by(parse: Callable[[str], T], shape: str) -> Callable[[str], T]:
    """Return an option type by `parse`, whose error names the expected format."""

    def read(text: str) -> T:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"must be {shape}: {error}") from error

    return read


def one_of(kinds: type[KindT]) -> Callable[[str], KindT]:
    """Return an option type for the values of an enumeration, whose error lists them."""

    def read(text: str) -> KindT:
        for kind in kinds:
            if kind.value == text:
                return kind
        raise argparse.ArgumentTypeError(f"must be {alternatives([kind.value for kind in kinds])}, not {text!r}")

    return read


def known(words: Collection[str], unusable: Mapping[str, str] = MappingProxyType({})) -> Callable[[str], str]:
    """Return an option type for one of several words, whose error suggests a similar one.

    `unusable` has the reasons why other words are refused.
    """

    def read(text: str) -> str:
        if text in words:
            return text
        if text in unusable:
            raise argparse.ArgumentTypeError(f"'{text}' can't be loaded: {unusable[text]}")
        raise argparse.ArgumentTypeError(f"there is no '{text}'{suggestion(text, words)}; there are {', '.join(words)}")

    return read


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return ', did you mean ...?' if known words end alike (/hold, /d1/bridge/hold) or one is similar, else ""."""
    known, end = list(known), f"/{word.rpartition('/')[2]}"
    ends = {each: each[each.rfind("/") :] for each in known if "/" in each}
    alike = [
        each for each in known if get_close_matches(end, [ends.get(each, "")], 1, 0.8) or each.endswith(f".{word}")
    ]
    alike = [each for each in alike if ends.get(each) == end] or alike
    close = get_close_matches(word, alike, 4, 0.0) or get_close_matches(word, known, 1)
    return f", did you mean {' or '.join(map(repr, close))}?" if close else ""


def alternatives(words: Sequence[str]) -> str:
    """Join two or more words as 'a, b or c'."""
    return f"{', '.join(words[:-1])} or {words[-1]}"


def not_negative(text: str) -> float:
    """Parse a finite, non-negative number."""
    value = float(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"must be finite and not below 0, not {text}")
    return value


def positive(text: str) -> float:
    """Parse a finite, positive number."""
    value = not_negative(text)
    if not value:
        raise argparse.ArgumentTypeError("must be above 0")
    return value


def add_sizes(parser: Any, sizes: Mapping[str, float]) -> None:
    """Add an option for each size of a robot, with its default by the name of its parameter."""
    for name, size in sizes.items():
        add_number(parser, f"--{name.replace('_', '-')}", size, "size of the robot as built", positive)


def add_ports(parser: Any, ports: Mapping[str, int], whose: str) -> None:
    """Add an option for each port, with its default by the name of its parameter."""
    for name, number in ports.items():
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, type=port, default=number, help=f"port {whose} (%(default)s)")
