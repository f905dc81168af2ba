# SPDX-License-Identifier: Apache-2.0
"""Command: the AT commands of a client, and their text.

A datagram has one or more commands, `AT*NAME=sequence,argument,...<CR>`; a command never spans two datagrams. Arguments
are decimal signed 32-bit integers, and strings in double quotes. A float is the decimal of its IEEE-754 bits, read as a
signed integer. A drone drops a line of more than MAX_LINE characters as a whole.
"""

import math
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Any, NamedTuple

from drone_bridge.wire.events import LocalProtocolError, RemoteProtocolError
from drone_bridge.wire.outgoing import Range

#: Maximum length of a line, and of all commands that we send at a time, characters.
MAX_LINE = 1024
#: Bits of REF that are always set. Firmware 1.x stores wrong trims permanently if they are missing.
REF_BASE = 1 << 18 | 1 << 20 | 1 << 22 | 1 << 24 | 1 << 28
_REF_FLY, _REF_EMERGENCY = 1 << 9, 1 << 8
#: Flags of PCMD. Without PROGRESSIVE, the drone ignores the four shares and hovers.
PROGRESSIVE, COMBINED_YAW, ABSOLUTE = 1, 2, 4
#: Share of a maximum.
SHARE = Range(-1.0, 1.0)
_INT = struct.Struct("<i")
_FLOAT = struct.Struct("<f")
_LARGEST_INT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Ref:
    """Take-off and landing, which are a level, and emergency, which toggles when it is pressed."""

    is_flying: bool = False
    is_emergency: bool = False


@dataclass(frozen=True, slots=True)
class Pcmd:
    """Steering: shares of the configured maxima. Without the flag PROGRESSIVE, the drone hovers."""

    flags: int = 0
    roll: Annotated[float, SHARE] = 0.0  # + banks and goes right
    pitch: Annotated[float, SHARE] = 0.0  # + raises the nose and goes backward
    gaz: Annotated[float, SHARE] = 0.0  # + climbs
    yaw: Annotated[float, SHARE] = 0.0  # + turns right


@dataclass(frozen=True, slots=True)
class PcmdMag:
    """Steering with the pilot's magnetic heading."""

    flags: int = 0
    roll: Annotated[float, SHARE] = 0.0  # as of Pcmd
    pitch: Annotated[float, SHARE] = 0.0
    gaz: Annotated[float, SHARE] = 0.0
    yaw: Annotated[float, SHARE] = 0.0
    psi: Annotated[float, SHARE] = 0.0  # share of 180 degrees, clockwise from north
    psi_accuracy: Annotated[float, SHARE] = 0.0


@dataclass(frozen=True, slots=True)
class FlatTrim:
    """The drone's attitude counts as level from now on. Only on the ground."""


@dataclass(frozen=True, slots=True)
class WatchdogReset:
    """Acknowledgement of the communication watchdog."""


class ControlMode(IntEnum):
    """Modes of CTRL."""

    NONE = 0  # also clears the acknowledgement
    GET_CONFIGURATION = 4
    CLEAR_ACKNOWLEDGEMENT = 5
    GET_IDS = 6


@dataclass(frozen=True, slots=True)
class Control:
    """CTRL: request for the configuration over TCP, or the end of an acknowledgement."""

    mode: int


@dataclass(frozen=True, slots=True)
class Config:
    """CONFIG: one setting, as text."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class ConfigIds:
    """CONFIG_IDS: the ids to which the next CONFIG belongs, 8 hexadecimal digits each."""

    session: str
    user: str
    application: str


@dataclass(frozen=True, slots=True)
class OtherCommand:
    """Any other command: its name and its arguments, as they are on the wire."""

    name: str
    arguments: tuple[str, ...] = ()


Command = Ref | Pcmd | PcmdMag | FlatTrim | WatchdogReset | Control | Config | ConfigIds | OtherCommand

_NAME = re.compile(r"[A-Z_]{1,32}")
_LINE = re.compile(r'AT\*([A-Z_]{1,32})=(\d{1,10})((?:,(?:"[^"\r\n]*"|[^,"\r\n]*))*)')
_ARGUMENT = re.compile(r',("[^"]*"|[^,"]*)')
_BARE = re.compile(r"[ !#-+\x2d-~]*")
_TEXT = re.compile(r"[ !#-~]*")
_ID = re.compile(r"[0-9A-Fa-f]{8}")


def float_bits(value: float) -> int:
    """Return the bits of a float as a signed integer. Raises OverflowError."""
    return int(_INT.unpack(_FLOAT.pack(value))[0])


def float_of_bits(bits: int) -> float:
    """Return the float of these bits. Raises struct.error beyond 32 bits."""
    return float(_FLOAT.unpack(_INT.pack(bits))[0])


def setting(key: str, value: bool | int | float | str) -> Config:
    """Return the setting with this value as the drone writes it."""
    if isinstance(value, bool):
        return Config(key, "TRUE" if value else "FALSE")
    return Config(key, f"{value:.6g}" if isinstance(value, float) else str(value))


# Writing.


def command_text(command: Command, sequence: int) -> str:
    """Return the line of a command. Raises LocalProtocolError for one that would not be read equally."""
    if isinstance(command, OtherCommand):
        name, arguments = _other_name(command.name), _bare(command.arguments)
    elif type(command) in _NAMES:
        name = _NAMES[type(command)]
        arguments = _FORMS[name].write(command)
    else:
        raise LocalProtocolError(f"A client does not send {type(command).__name__}.")
    line = f"AT*{name}={','.join((str(sequence), *arguments))}\r"
    if len(line) > MAX_LINE:
        raise LocalProtocolError(f"The command {name} has {len(line)} characters, and {MAX_LINE} are allowed.")
    return line


def _write_ref(command: Ref) -> tuple[str, ...]:
    fly, emergency = (_flag(each) for each in (command.is_flying, command.is_emergency))
    return (str(REF_BASE | _REF_FLY * fly | _REF_EMERGENCY * emergency),)


def _write_shares(command: Pcmd | PcmdMag) -> tuple[str, ...]:
    shares = [command.roll, command.pitch, command.gaz, command.yaw]
    if isinstance(command, PcmdMag):
        shares += [command.psi, command.psi_accuracy]
    return (_whole("flags", command.flags), *(str(float_bits(_share(each))) for each in shares))


def _write_ids(command: ConfigIds) -> tuple[str, ...]:
    return tuple(_quoted_id(each) for each in (command.session, command.user, command.application))


def _other_name(name: object) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in _FORMS:
        raise LocalProtocolError(f"The command's name is {name!r:.100}, but must be another one in capital letters.")
    return name


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise LocalProtocolError(f"A button of REF is {value!r:.100}, but must be true or false.")
    return value


def _share(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not SHARE.holds(value):
        raise LocalProtocolError(f"A share of PCMD is {value!r:.100}, but must be a number from -1 to 1.")
    return float(value)


def _whole(name: str, value: object) -> str:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LARGEST_INT:
        raise LocalProtocolError(f"The {name} is {value!r:.100}, but must be a whole number from 0 to 2^31 - 1.")
    return str(int(value))


def _quoted(name: str, value: object) -> str:
    if not isinstance(value, str) or not _TEXT.fullmatch(value):
        raise LocalProtocolError(f"The {name} of a setting is {value!r:.100}, but must be ASCII without quotes.")
    return f'"{value}"'


def _quoted_id(value: object) -> str:
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise LocalProtocolError(f"An id is {value!r:.100}, but must have 8 hexadecimal digits.")
    return f'"{value}"'


def _bare(arguments: object) -> tuple[str, ...]:
    if not isinstance(arguments, tuple):
        raise LocalProtocolError(f"The arguments are {arguments!r:.100}, but must be a tuple of texts.")
    for each in arguments:
        if not isinstance(each, str) or not (
            _BARE.fullmatch(each) or _TEXT.fullmatch(each[1:-1] if _is_quoted(each) else '"')
        ):
            raise LocalProtocolError(f"An argument is {each!r:.100}, but must be a number or a text in quotes.")
    return arguments


def _is_quoted(text: str) -> bool:
    return len(text) >= 2 and text[0] == text[-1] == '"'


# Reading.


def lines_of(datagram: bytes) -> Iterator[str]:
    """Return the lines of a datagram, also those without an end."""
    return (line for line in re.split("[\r\n]+", datagram.decode("latin-1")) if line)


def read_line(line: str) -> tuple[int, Command]:
    """Return the sequence number and the command of a line. Raises RemoteProtocolError."""
    if len(line) > MAX_LINE:
        raise RemoteProtocolError(f"A command has {len(line)} characters (limit {MAX_LINE}).")
    if not line.isascii() or not (match := _LINE.fullmatch(line)) or int(match[2]) > _LARGEST_INT:
        raise RemoteProtocolError(f"{line!r:.100} is not an AT command.")
    name, arguments = match[1], tuple(_ARGUMENT.findall(match[3]))
    try:
        return int(match[2]), _command(name, arguments)
    except (ValueError, IndexError, struct.error) as error:
        raise RemoteProtocolError(f"The arguments of {name} are {', '.join(arguments)!r:.100}.") from error


def _command(name: str, arguments: tuple[str, ...]) -> Command:
    form = _FORMS.get(name)
    return form.read(arguments) if form else OtherCommand(name, arguments)


def _read_ref(arguments: tuple[str, ...]) -> Ref:
    bits = int(arguments[0])
    return Ref(bool(bits & _REF_FLY), bool(bits & _REF_EMERGENCY))


def _read_config(arguments: tuple[str, ...]) -> Config:
    key, value = (_unquoted(each) for each in arguments)
    return Config(key, value)


def _read_ids(arguments: tuple[str, ...]) -> ConfigIds:
    session, user, application = (_unquoted(each) for each in arguments)
    return ConfigIds(session, user, application)


def _read_flags(argument: str) -> int:
    flags = int(argument)
    if not 0 <= flags <= _LARGEST_INT:
        raise ValueError("negative")
    return flags


def _shares(arguments: tuple[str, ...], count: int) -> tuple[float, ...]:
    shares = tuple(float_of_bits(int(each)) for each in arguments)
    if len(shares) != count or not all(math.isfinite(each) for each in shares):
        raise ValueError("not finite")
    return shares


def _unquoted(argument: str) -> str:
    if not _is_quoted(argument):
        raise ValueError("not in quotes")
    return argument[1:-1]


class _Form(NamedTuple):
    """How a command is written and read. Reading raises ValueError, IndexError and struct.error."""

    kind: type
    write: Callable[[Any], tuple[str, ...]]
    read: Callable[[tuple[str, ...]], Command]


_FORMS: dict[str, _Form] = {
    "REF": _Form(Ref, _write_ref, _read_ref),
    "PCMD": _Form(Pcmd, _write_shares, lambda found: Pcmd(_read_flags(found[0]), *_shares(found[1:5], 4))),
    "PCMD_MAG": _Form(PcmdMag, _write_shares, lambda found: PcmdMag(_read_flags(found[0]), *_shares(found[1:7], 6))),
    "FTRIM": _Form(FlatTrim, lambda _: (), lambda _: FlatTrim()),
    "COMWDG": _Form(WatchdogReset, lambda _: (), lambda _: WatchdogReset()),
    "CTRL": _Form(Control, lambda each: (_whole("mode", each.mode), "0"), lambda found: Control(_read_flags(found[0]))),
    "CONFIG": _Form(Config, lambda each: (_quoted("key", each.key), _quoted("value", each.value)), _read_config),
    "CONFIG_IDS": _Form(ConfigIds, _write_ids, _read_ids),
}
_NAMES = {form.kind: name for name, form in _FORMS.items()}
