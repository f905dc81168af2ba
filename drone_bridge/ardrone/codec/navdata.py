# SPDX-License-Identifier: Apache-2.0
"""Navdata: the state of a drone, one datagram each, as a head and options that are read by their own size.

Sizes of options grew at their end from firmware to firmware, so an option is read as far as it is known. Unknown tags
are kept as bytes. A float that is not finite is not reported: None.

| part | layout, little-endian |
|---|---|
| head | uint32 0x55667788 or 0x55667789, uint32 state, uint32 sequence, uint32 vision |
| option | uint16 tag, uint16 size with these four bytes, data |
| last option | tag 0xFFFF, size 8, uint32 sum of all bytes before it |
"""

import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from functools import cache, cached_property
from typing import Any, NamedTuple
from zlib import adler32

from drone_bridge.ar_drone.flight_state import FlightState, flight_state_of
from drone_bridge.wire.events import LocalProtocolError, RemoteProtocolError

MAX_NAVDATA_BYTES = 8192
HEADERS = (0x55667788, 0x55667789)
CHECKSUM = 0xFFFF
_HEAD, _OPTION, _SUM = struct.Struct("<IIII"), struct.Struct("<HH"), struct.Struct("<I")
_WORD = 2**32 - 1


class State(IntFlag):
    """Bits of a drone's state."""

    FLYING = 1 << 0
    VIDEO = 1 << 1
    VISION = 1 << 2
    ANGULAR_SPEEDS = 1 << 3
    ALTITUDE_CONTROL = 1 << 4
    START_BUTTON = 1 << 5  # echo of the bit to fly in REF
    COMMAND_ACKNOWLEDGED = 1 << 6
    CAMERA_READY = 1 << 7
    USB_READY = 1 << 9
    DEMO_ONLY = 1 << 10
    BOOTSTRAP = 1 << 11
    MOTOR_FAULT = 1 << 12
    COMMUNICATION_LOST = 1 << 13
    SOFTWARE_FAULT = 1 << 14
    BATTERY_LOW = 1 << 15
    USER_EMERGENCY = 1 << 16
    TIMER_ELAPSED = 1 << 17
    MAGNETOMETER_UNCALIBRATED = 1 << 18
    ANGLES_OUT_OF_RANGE = 1 << 19
    TOO_MUCH_WIND = 1 << 20
    ULTRASOUND_DEAF = 1 << 21
    CUTOUT = 1 << 22
    PIC_VERSION_OK = 1 << 23
    COMMAND_THREAD = 1 << 24
    NAVDATA_THREAD = 1 << 25
    VIDEO_THREAD = 1 << 26
    ACQUISITION_THREAD = 1 << 27
    CONTROL_LATE = 1 << 28
    ADC_LATE = 1 << 29
    WATCHDOG = 1 << 30
    EMERGENCY = 1 << 31


class StateWord(int):
    """State bits as received. As text, the names of those that are set.

    No State, as an IntFlag keeps each combination that it has ever seen.
    """

    def __str__(self) -> str:
        return "|".join(str(bit.name).lower() for bit in State if int(self) & int(bit)) or "0"


class Tag(IntEnum):
    """Tags of options."""

    DEMO = 0
    TIME = 1
    PHYSICAL = 3
    ALTITUDE = 10
    VISION_DETECT = 16
    PRESSURE = 21
    MAGNETOMETER = 22
    WIND = 23
    WIFI = 26


class Option(NamedTuple):
    """Option as on the wire: its tag and its data."""

    tag: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Demo:
    """The option that all modes have. None: not reported."""

    ctrl_state: int  # major flight state in the upper half
    battery: int  # percent
    theta: float | None  # thousandths of a degree, + raises the nose
    phi: float | None  # thousandths of a degree, + banks right
    psi: float | None  # thousandths of a degree, + turns right
    altitude: int  # mm
    vx: float | None  # mm/s, + forward, in level axes
    vy: float | None  # mm/s, + right
    vz: float | None  # mm/s, + down; always 0
    picture: int = 0  # counter of pictures, 0 with firmware 2.x

    @property
    def flight_state(self) -> FlightState | None:
        """Major flight state, None if unknown."""
        return flight_state_of(self.ctrl_state)


@dataclass(frozen=True, slots=True)
class Physical:
    """Calibrated inertial measurements, along and about the body's axes forward, right, down."""

    temperature: float | None  # of the accelerometer, degrees Celsius
    acceleration: tuple[float | None, float | None, float | None]  # specific force, thousandths of g
    rates: tuple[float | None, float | None, float | None]  # degrees per second


@dataclass(frozen=True, slots=True)
class Magnetometer:
    """Magnetic field along the body's axes forward, left, up, without the offsets, mG."""

    rectified: tuple[float | None, float | None, float | None]
    is_calibrated: bool


@dataclass(frozen=True, slots=True)
class Pressure:
    """Barometer."""

    temperature: int  # tenths of a degree Celsius
    pressure: int  # Pa


@dataclass(frozen=True, slots=True)
class Detected:
    """Detection of the drone's vision, in thousandths of the picture from its upper left corner."""

    xc: int
    yc: int
    width: int
    height: int
    distance: int  # cm


#: Known fields of an option's data, and where it is complete.
_DEMO = struct.Struct("<IIfffifffI")
DEMO_BYTES = 144
_PHYSICAL = struct.Struct("<fHffffff")
_MAGNETOMETER = struct.Struct("<hhh fff fff fff fff b".replace(" ", ""))
_PRESSURE = struct.Struct("<ihii")
_ULTRASOUND = struct.Struct("<ifii")
_WIFI = struct.Struct("<f")
_DETECTIONS = struct.Struct("<I24I")
MAX_DETECTIONS = 4


@dataclass(frozen=True)
class Navdata:
    """Datagram of navdata. Options that are too short for their fields are not reported."""

    state: int  # bits of State
    sequence: int
    vision: int = 0
    options: tuple[Option, ...] = ()
    header: int = HEADERS[0]

    def has(self, bits: State) -> bool:
        """Return whether one of these bits is set."""
        return bool(int(self.state) & int(bits))

    def data(self, tag: int) -> bytes:
        """Return the data of the first option with this tag; nothing without one."""
        for each, data in self.options:
            if each == tag:
                return data
        return b""

    @cached_property
    def demo(self) -> Demo | None:
        values = self._values(Tag.DEMO, _DEMO)
        if values is None:
            return None
        ctrl_state, battery, theta, phi, psi, altitude, vx, vy, vz, picture = values
        theta, phi, psi, vx, vy, vz = map(_known, (theta, phi, psi, vx, vy, vz))
        return Demo(ctrl_state, battery, theta, phi, psi, altitude, vx, vy, vz, picture)

    @property
    def time_s(self) -> float | None:
        """Time of the drone's clock, s. It starts over after 2048 s."""
        values = self._values(Tag.TIME, _SUM)
        return None if values is None else (values[0] >> 21) + (values[0] & 0x1FFFFF) / 1e6

    @property
    def physical(self) -> Physical | None:
        values = self._values(Tag.PHYSICAL, _PHYSICAL)
        if values is None:
            return None
        temperature, _, *six = values
        x, y, z, p, q, r = map(_known, six)
        return Physical(_known(temperature), (x, y, z), (p, q, r))

    @property
    def magnetometer(self) -> Magnetometer | None:
        values = self._values(Tag.MAGNETOMETER, _MAGNETOMETER)
        if values is None:
            return None
        x, y, z = map(_known, values[6:9])
        return Magnetometer((x, y, z), bool(values[-1]))

    @property
    def pressure(self) -> Pressure | None:
        values = self._values(Tag.PRESSURE, _PRESSURE)
        return None if values is None else Pressure(*values[2:])

    @property
    def ultrasound(self) -> int | None:
        """Height by the ultrasound sensor alone, mm."""
        values = self._values(Tag.ALTITUDE, _ULTRASOUND)
        return None if values is None else int(values[3])

    @property
    def link_quality(self) -> float | None:
        """Quality of the Wi-Fi link, 0 to 1."""
        values = self._values(Tag.WIFI, _WIFI)
        quality = None if values is None else _known(values[0])
        return None if quality is None else 1.0 - quality

    @property
    def detections(self) -> tuple[Detected, ...] | None:
        values = self._values(Tag.VISION_DETECT, _DETECTIONS)
        if values is None:
            return None
        count, *words = values
        columns = zip(*(words[4 * row : 4 * row + 4] for row in range(1, 6)), strict=True)
        return tuple(Detected(*column) for column in list(columns)[: min(count, MAX_DETECTIONS)])

    @property
    def is_airborne(self) -> bool:
        """Whether it is in the air: by the state, or the flight state, which change at different moments.

        Some drones report LOOPING on the ground after a landing, so that only the state counts then.
        """
        if self.has(State.EMERGENCY):
            return False
        demo = self.demo
        state = demo.flight_state if demo else None
        return self.has(State.FLYING) or bool(state and state.is_airborne and state is not FlightState.LOOPING)

    def _values(self, tag: Tag, layout: struct.Struct) -> tuple[Any, ...] | None:
        data = self.data(tag)
        return layout.unpack_from(data) if len(data) >= layout.size else None


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


# Options of an emulated drone.


def demo_option(demo: Demo) -> Option:
    """Return the option. Raises LocalProtocolError."""
    floats = [
        math.nan if each is None else each for each in (demo.theta, demo.phi, demo.psi, demo.vx, demo.vy, demo.vz)
    ]
    head, tail = (demo.ctrl_state, demo.battery, *floats[:3]), (demo.altitude, *floats[3:], demo.picture)
    return Option(Tag.DEMO, _packed(_DEMO, *head, *tail).ljust(DEMO_BYTES, b"\0"))


def time_option(time_s: float) -> Option:
    """Return the option of the drone's clock."""
    whole = int(time_s)
    return Option(Tag.TIME, _SUM.pack((whole % 2048) << 21 | int((time_s - whole) * 1e6)))


def physical_option(physical: Physical) -> Option:
    """Return the option, as of all firmwares."""
    values = (physical.temperature, *physical.acceleration, *physical.rates)
    temperature, *six = (math.nan if each is None else each for each in values)
    return Option(Tag.PHYSICAL, _packed(_PHYSICAL, temperature, 0, *six).ljust(42, b"\0"))


def magnetometer_option(magnetometer: Magnetometer) -> Option:
    """Return the option of firmware 2.x."""
    rectified = (math.nan if each is None else each for each in magnetometer.rectified)
    values = (0, 0, 0, *[0.0] * 3, *rectified, *[0.0] * 6, int(magnetometer.is_calibrated))
    return Option(Tag.MAGNETOMETER, _packed(_MAGNETOMETER, *values).ljust(71, b"\0"))


def pressure_option(pressure: Pressure) -> Option:
    """Return the option of firmware 2.x."""
    return Option(Tag.PRESSURE, _packed(_PRESSURE, 0, 0, pressure.temperature, pressure.pressure))


def ultrasound_option(height: int) -> Option:
    """Return the option of the height by ultrasound, mm."""
    return Option(Tag.ALTITUDE, _packed(_ULTRASOUND, height, 0.0, 0, height).ljust(52, b"\0"))


def wifi_option(quality: float) -> Option:
    """Return the option of a link quality from 0 to 1."""
    return Option(Tag.WIFI, _WIFI.pack(1.0 - quality))


def detections_option(detections: Iterable[Detected], size: int = 324) -> Option:
    """Return the option: 324 bytes of data in firmware 2.x, 116 in 1.x."""
    found = list(detections)[:MAX_DETECTIONS]
    rows = [[0] * MAX_DETECTIONS]
    for name in ("xc", "yc", "width", "height", "distance"):
        rows.append([getattr(each, name) for each in found] + [0] * (MAX_DETECTIONS - len(found)))
    data = _packed(_DETECTIONS, len(found), *(word for row in rows for word in row))
    return Option(Tag.VISION_DETECT, data.ljust(size, b"\0"))


def _packed(layout: struct.Struct, *values: Any) -> bytes:
    try:
        return layout.pack(*values)
    except (struct.error, OverflowError, TypeError) as error:
        raise LocalProtocolError(f"{values!r:.200} does not fit an option of navdata: {error}.") from error


# Datagrams.


def read_navdata(datagram: bytes | bytearray | memoryview) -> Navdata:
    """Return a datagram's navdata. Raises RemoteProtocolError."""
    data = bytes(datagram[: MAX_NAVDATA_BYTES + 1])
    if not _HEAD.size <= len(data) <= MAX_NAVDATA_BYTES:
        raise RemoteProtocolError(
            f"Navdata has {len(datagram)} bytes, and {_HEAD.size} to {MAX_NAVDATA_BYTES} are allowed."
        )
    header, state, sequence, vision = _HEAD.unpack_from(data)
    if header not in HEADERS:
        raise RemoteProtocolError(f"Navdata starts with {header:#x}, not with {HEADERS[0]:#x} or {HEADERS[1]:#x}.")
    options: list[Option] = []
    at, end, head = _HEAD.size, len(data), _OPTION.size
    while at + head <= end:
        tag, size = _OPTION.unpack_from(data, at)
        if size < head or at + size > end:
            raise RemoteProtocolError(f"Option {tag} of navdata at byte {at} has {size} of {end - at} bytes.")
        if tag == CHECKSUM:
            _check(data[at + head : at + size], data, at)
            return Navdata(StateWord(state), sequence, vision, tuple(options), header)
        options.append(Option(tag, data[at + head : at + size]))
        at += size
    raise RemoteProtocolError("Navdata has no checksum.")


def _check(checksum: bytes, data: bytes, at: int) -> None:
    if len(checksum) != _SUM.size or at + _OPTION.size + _SUM.size != len(data):
        raise RemoteProtocolError(f"The checksum of navdata at byte {at} of {len(data)} is not its end.")
    if _SUM.unpack(checksum)[0] != _sum_of(data[:at]):
        raise RemoteProtocolError("The checksum of navdata is wrong.")


def _sum_of(data: bytes | bytearray) -> int:
    """Return the sum of all bytes, which is the lower half of Adler-32 begun with 0, for at most 256 of them."""
    return sum(adler32(data[at : at + 256], 0) & 0xFFFF for at in range(0, len(data), 256))


def write_navdata(navdata: Navdata) -> bytes:
    """Return the datagram. Raises LocalProtocolError for navdata that would not be read equally."""
    words = (navdata.header, navdata.state, navdata.sequence, navdata.vision)
    if not all(isinstance(each, int) and not isinstance(each, bool) and 0 <= each <= _WORD for each in words):
        raise LocalProtocolError(f"The head of navdata is {words!r:.200}, but must be numbers of 32 bits.")
    if navdata.header not in HEADERS:
        raise LocalProtocolError(f"The head of navdata is {words!r:.200}, which no drone sends.")
    packet = bytearray(_HEAD.pack(*words))
    if not isinstance(navdata.options, tuple):
        raise LocalProtocolError(f"The options of navdata are {navdata.options!r:.100}, but must be a tuple.")
    for option in navdata.options:
        packet += _written(option)
        if len(packet) > MAX_NAVDATA_BYTES - 8:
            raise LocalProtocolError(f"Navdata has more than {MAX_NAVDATA_BYTES} bytes.")
    return bytes(packet + _OPTION.pack(CHECKSUM, 8) + _SUM.pack(_sum_of(packet) & _WORD))


def _written(option: object) -> bytes:
    match option:
        case (tag, bytes(data)) if _is_tag(tag):
            if len(data) > MAX_NAVDATA_BYTES:
                raise LocalProtocolError(f"Option {tag} has {len(data)} bytes (limit {MAX_NAVDATA_BYTES}).")
            return _OPTION.pack(tag, _OPTION.size + len(data)) + data
    raise LocalProtocolError(f"An option of navdata is {option!r:.200}, but must be a tag and bytes.")


def _is_tag(tag: object) -> bool:
    return isinstance(tag, int) and not isinstance(tag, bool) and 0 <= tag < CHECKSUM


@cache
def full_options() -> int:
    """Return the mask for `general:navdata_options` with all options that are read here."""
    return sum(1 << tag for tag in Tag)
