# SPDX-License-Identifier: Apache-2.0
"""EmulatedArdrone: how an AR.Drone answers its clients, and flies. Pure, with the time as an input.

By Parrot's guides and SDK, by captures, and by the programs of others. What no source settles is an attribute of
`FirmwareBehaviour`, and each is tested both ways.

- **Commands** of any client count: there is no owner. Their numbers have to grow, see the codec.
- **Watchdog**: without a command for `watchdog_s`, the drone hovers and sets WATCHDOG. Any command steers again; only
WatchdogReset clears the bit, and permits lower numbers.
- **Loss**: without a command for LOST_S, the client is lost: the drone sets COMMUNICATION_LOST, sends no more navdata
until it is asked again, and hovers or lands.
- **Settings** are acknowledged by COMMAND_ACKNOWLEDGED until a client clears it. Unknown ones, those that need ids of
the client's own, and those with other ids than the present ones are refused without a word.
- **Navdata**: with navdata_demo FALSE all options of the version, else the mask's beside demo and vision.
- **Emergency**: the bit toggles it when it is pressed. The motors stop at any height.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, field
from typing import Any

from drone_bridge.ar_drone.flight import STATES, ArDroneFlight, FlightPhase, Sticks
from drone_bridge.ar_drone.flight_state import MAJOR_STATE_SHIFT
from drone_bridge.ardrone import codec, units
from drone_bridge.ardrone.codec import navdata as blocks
from drone_bridge.ardrone.codec.commands import SHARE
from drone_bridge.ardrone.codec.configuration import FIRMWARE
from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.measurement import Measurement
from drone_bridge.wire.events import RemoteProtocolError

LOST_S = 2.0
DEMO_RATE, FULL_RATE = 15.0, 200.0
FLIES_S = 720.0
STEP_S = 0.01
NO_FAULT = codec.State(0)
#: Longest stall of this process that the flight catches up, s; after a longer one it continues from there.
LONGEST_STEP_S = 0.25
LOWEST_CHARGE = 0.2
#: Minor states of a hovering drone.
LOST_COMMUNICATION = 8
#: Time for which a drone that takes off still reports to be on the ground, s.
TAKE_OFF_DELAY_S = 0.15
#: Most clients that get navdata at a time.
MAX_CLIENTS = 8
#: Limit of sentences about commands that are not executed.
MOST_REFUSALS = 16
#: Id of the default configuration.
NO_ID = "00000000"
#: What the ultrasound sensor reads on the ground, mm.
BLIND_ZONE_MM = 243
#: Magnetic field over flat ground where the emulated drone flies, T: to the north, the west and up.
FIELD = (2e-5, 0.0, -4.3e-5)
#: Bytes of data of all options, by their tags, as of recorded navdata of either version.
_OPTION_BYTES = {
    1: (144, 4, 36, 42, 12, 8, 32, 12, 20, 64, 52, 12, 40, 88, 104, 360, 116, 4, 36, 25, 8),
    2: (144, 4, 48, 42, 12, 8, 84, 12, 20, 72, 52, 12, 40, 88, 104, 360, 324, 4, 36, 61, 8, 14, 71, 52, 68, 28, 4, 212),
}
_ALWAYS = (
    codec.State.ALTITUDE_CONTROL
    | codec.State.PIC_VERSION_OK
    | codec.State.COMMAND_THREAD
    | codec.State.NAVDATA_THREAD
    | codec.State.VIDEO_THREAD
    | codec.State.ACQUISITION_THREAD
)
#: Settings of firmware 2.x, whose types are those of Parrot's config_keys.h.
_DEFAULTS: dict[str, bool | int | float | str] = {
    "general:num_version_config": 1,
    FIRMWARE: "2.4.8",
    "general:drone_serial": "AR0000000000",
    "general:ardrone_name": "My ARDrone",
    "general:navdata_demo": False,
    "general:navdata_options": 1 << codec.Tag.DEMO | 1 << codec.Tag.VISION_DETECT,
    "general:com_watchdog": 2,
    "general:video_enable": True,
    "general:vision_enable": True,
    "general:vbat_min": 9000,
    "control:euler_angle_max": 0.2094,
    "control:control_vz_max": 700.0,
    "control:control_yaw": 1.745,
    "control:altitude_max": 3000,
    "control:altitude_min": 50,
    "control:outdoor": False,
    "control:indoor_euler_angle_max": 0.2094,
    "control:indoor_control_vz_max": 700.0,
    "control:indoor_control_yaw": 1.745,
    "control:outdoor_euler_angle_max": 0.349,
    "control:outdoor_control_vz_max": 1000.0,
    "control:outdoor_control_yaw": 3.49,
    "control:flight_without_shell": False,
    "control:flying_mode": 0,
    "control:hovering_range": 1000,
    "control:flight_anim": "0,0",
    "network:ssid_single_player": "ardrone2_000000",
    "network:ssid_multi_player": "ardrone2_000000",
    "network:wifi_mode": 0,
    "network:wifi_rate": 0,
    "network:owner_mac": "00:00:00:00:00:00",
    "pic:ultrasound_freq": 8,
    "video:video_codec": 0x81,
    "video:video_channel": 0,
    "video:bitrate": 1000,
    "video:max_bitrate": 1000,
    "video:bitrate_ctrl_mode": 0,
    "leds:leds_anim": "0,0,0",
    "detect:enemy_colors": 1,
    "detect:groundstripe_colors": 16,
    "detect:enemy_without_shell": 0,
    "detect:detect_type": 3,
    "detect:detections_select_h": 0,
    "detect:detections_select_v_hsync": 0,
    "detect:detections_select_v": 0,
    **{f"custom:{name}_id": NO_ID for name in ("application", "profile", "session")},
    **{f"custom:{name}_desc": f"Default {name} configuration" for name in ("application", "profile", "session")},
}
_READ_ONLY = frozenset({"general:num_version_config", FIRMWARE, "general:drone_serial", "general:vbat_min"})
#: Keys that firmware 2.x only takes with ids of the client's own.
_OF_SESSIONS = frozenset({"video:video_codec", "video:bitrate", "video:max_bitrate", "video:bitrate_ctrl_mode"})


@dataclass(frozen=True, slots=True)
class FirmwareBehaviour:
    """What firmwares do differently, or no source settles."""

    version: int = 2  # of the hardware, 1 or 2
    watchdog_s: float = 0.25
    lands_when_lost: bool = False  # else it hovers until it is commanded again
    any_number_after_loss: bool = True
    takes_off_again: bool = True  # after a landing of its own, while it is told to fly
    emergency_on_ground: bool = False  # the bit enters an emergency there, too
    demo_ends_bootstrap: bool = False  # navdata_demo has to be TRUE once, else either value does
    fly_ignored_while_pressed: bool = True  # the bit to fly, while that of the emergency is set
    serves_newest_only: bool = True  # navdata goes to the client that has asked last
    acknowledges_refused: bool = True  # settings
    loops_when_landed: bool = False  # reports the flight state LOOPING after a landing, instead of LANDED


@dataclass(slots=True)
class EmulatedArdrone:
    """Drone and its firmware. Single-threaded."""

    flight: ArDroneFlight = field(default_factory=ArDroneFlight)
    behaviour: FirmwareBehaviour = FirmwareBehaviour()
    charge: float = 1.0
    is_bootstrapped: bool = False
    is_acknowledging: bool = False
    settings: dict[str, str] = field(
        default_factory=lambda: {key: codec.setting(key, value).value for key, value in _DEFAULTS.items()}
    )
    ref: codec.Ref = field(default_factory=codec.Ref)
    #: Commands that counted, by their class.
    counts: dict[str, int] = field(default_factory=dict)
    #: Lines about what happened, for a log.
    events: list[str] = field(default_factory=list)
    #: Number of configuration texts that a client has asked for over the control port.
    texts_due: int = 0
    #: State bits of the faults that have caused an emergency.
    faults: codec.State = NO_FAULT
    #: Whether an emergency has stopped the motors. Read only.
    is_emergency: bool = False
    _connection: codec.DroneConnection = field(default_factory=codec.DroneConnection)
    _clients: dict[Any, float] = field(default_factory=dict)
    _refused: set[str] = field(default_factory=set)
    _commanded_at: float = -math.inf
    _is_watchdog_set: bool = False
    _is_lost: bool = True
    _is_user_emergency: bool = False
    _has_landed_itself: bool = False
    _ids: codec.ConfigIds | None = None
    _sequence: int = 0
    _next_navdata_at: float = -math.inf
    _ticked_at: float | None = None
    _took_off_at: float = -math.inf

    def __post_init__(self) -> None:
        if self.behaviour.version == 1:
            self.settings |= {FIRMWARE: "1.11.5", "video:video_codec": str(0x20)}

    # The clients.

    def ask(self, client: Any, now_s: float) -> None:
        """Register the sender of a datagram to the port of navdata, who receives navdata from now on."""
        if self.behaviour.serves_newest_only:
            self._clients.clear()
        self._clients[client] = now_s
        while len(self._clients) > MAX_CLIENTS:
            del self._clients[next(iter(self._clients))]

    def receive(self, datagram: bytes, now_s: float) -> None:
        """Execute a datagram of commands."""
        if self._is_lost and self.behaviour.any_number_after_loss:
            self._connection.restart()
        self._connection.receive_data(datagram)
        while True:
            try:
                event = self._connection.next_event()
            except RemoteProtocolError as error:
                self.events.append(f"refused a command: {error}")
                continue
            if event is codec.NEED_DATA:
                return
            if isinstance(event, codec.LateCommand):
                self.counts["late"] = self.counts.get("late", 0) + 1
                continue
            self._commanded_at, self._is_lost = now_s, False
            name = type(event).__name__
            self.counts[name] = self.counts.get(name, 0) + 1
            self._execute(event, now_s)

    def configuration(self) -> bytes:
        """Return the text of all settings, in the drone's own formats of numbers."""
        answered = {key: _as_answered(self.settings[key], _DEFAULTS[key]) for key in sorted(self.settings)}
        return codec.write_settings(answered)

    def navdata(self, now_s: float) -> tuple[bytes, tuple[Any, ...]] | None:
        """Return a datagram that is due, and its receivers; None otherwise."""
        if not self._clients or now_s < self._next_navdata_at:
            return None
        rate = FULL_RATE if self._is_full else DEMO_RATE
        self._next_navdata_at = max(self._next_navdata_at + 1 / rate, now_s)
        self._sequence += 1
        options = self._options() if self.is_bootstrapped else ()
        packet = codec.Navdata(self.state, self._sequence, 1, options)
        return self._connection.send(packet), tuple(self._clients)

    @property
    def clients(self) -> tuple[Any, ...]:
        """Clients that get navdata."""
        return tuple(self._clients)

    @property
    def state(self) -> codec.State:
        """State bits of navdata."""
        flight, state = self.flight, _ALWAYS | self.faults
        for bit, is_set in (
            (codec.State.FLYING, flight.is_flying),
            (codec.State.START_BUTTON, self.ref.is_flying),
            (codec.State.COMMAND_ACKNOWLEDGED, self.is_acknowledging),
            (codec.State.DEMO_ONLY, self.is_bootstrapped and not self._is_full),
            (codec.State.BOOTSTRAP, not self.is_bootstrapped),
            (codec.State.COMMUNICATION_LOST, self._is_lost),
            (codec.State.BATTERY_LOW, self.charge <= LOWEST_CHARGE),
            (codec.State.USER_EMERGENCY, self._is_user_emergency),
            (codec.State.WATCHDOG, self._is_watchdog_set),
            (codec.State.EMERGENCY, self.is_emergency),
        ):
            state |= bit if is_set else codec.State(0)
        return state

    @property
    def _is_full(self) -> bool:
        return self.is_bootstrapped and not _is_true(self.settings["general:navdata_demo"])

    # Time.

    def tick(self, now_s: float) -> None:
        """Fly until this time, and watch the clients."""
        left_s = min(now_s - (now_s if self._ticked_at is None else self._ticked_at), LONGEST_STEP_S)
        self._ticked_at = now_s
        silence_s, flight = now_s - self._commanded_at, self.flight
        if silence_s > self.behaviour.watchdog_s:
            self._is_watchdog_set = True
            flight.steer(Sticks())
        if silence_s > LOST_S and not self._is_lost:
            self._lose_client()
        if self.charge <= 0.0 and flight.phase in (FlightPhase.TAKING_OFF, FlightPhase.FLYING):
            self._land_itself("the battery is empty")
        if flight.is_flying:
            self.charge = max(0.0, self.charge - left_s / FLIES_S)
        while left_s > 1e-9:
            flight.advance(min(left_s, STEP_S))
            left_s -= STEP_S
        if flight.phase is FlightPhase.EMERGENCY and not self.is_emergency:
            flight.reset()

    def land_itself(self) -> None:
        """Land without a command, as with an empty battery."""
        self._land_itself("by itself")

    def enter_emergency(self, cause: codec.State) -> None:
        """Stop the motors because of a fault, such as a blocked propeller."""
        self.is_emergency, self.faults = True, self.faults | cause
        self.flight.stop()

    def _lose_client(self) -> None:
        self._is_lost, self._sequence = True, 0
        self._clients.clear()
        self.events.append("the client is lost")
        if self.behaviour.lands_when_lost and self.flight.is_flying:
            self._land_itself("the client is lost")

    def _land_itself(self, reason: str) -> None:
        self.events.append(f"lands: {reason}")
        self._has_landed_itself = True
        self.flight.land()

    # Commands.

    def _execute(self, command: codec.Command, now_s: float) -> None:
        ids, self._ids = self._ids, None
        if isinstance(command, codec.Ref):
            self._take_ref(command, now_s)
        elif isinstance(command, codec.Pcmd | codec.PcmdMag):
            self.flight.steer(_steering(command))
        elif isinstance(command, codec.Config):
            self._set(command, ids)
        elif isinstance(command, codec.ConfigIds):
            self._ids = command
        elif isinstance(command, codec.Control):
            self._control(command.mode)
        elif isinstance(command, codec.WatchdogReset):
            self._is_watchdog_set = False
            self._connection.restart()
        elif isinstance(command, codec.FlatTrim) and not self.flight.is_flying:
            self.flight.level_error = (0.0, 0.0)
        elif isinstance(command, codec.OtherCommand):
            self._refuse(command.name)

    def _refuse(self, name: str) -> None:
        """Log once that a command is not executed."""
        if name not in self._refused and len(self._refused) < MOST_REFUSALS:
            self._refused.add(name)
            self.events.append(f"{name} is not executed: this drone does not have it")

    def _take_ref(self, ref: codec.Ref, now_s: float) -> None:
        before, self.ref = self.ref, ref
        if ref.is_emergency and not before.is_emergency:
            self._toggle_emergency()
        if ref.is_emergency and self.behaviour.fly_ignored_while_pressed:
            return
        flight = self.flight
        if not ref.is_flying:
            self._has_landed_itself = False
            if flight.phase in (FlightPhase.TAKING_OFF, FlightPhase.FLYING):
                flight.land()
        elif flight.phase is FlightPhase.LANDED and self._may_take_off(before):
            self._took_off_at = flight.time
            flight.take_off()
            self.events.append("takes off")

    def _may_take_off(self, before: codec.Ref) -> bool:
        if self.is_emergency or self.charge <= LOWEST_CHARGE:
            return False
        is_again = self._has_landed_itself and before.is_flying
        return self.behaviour.takes_off_again or not is_again

    def _toggle_emergency(self) -> None:
        flight = self.flight
        if self.is_emergency:
            self.is_emergency = self._is_user_emergency = False
            self.faults = NO_FAULT
            flight.reset()
        elif flight.is_flying or self.behaviour.emergency_on_ground:
            self.is_emergency = self._is_user_emergency = True
            flight.stop()
        self.events.append(f"emergency: {'on' if self.is_emergency else 'off'}")

    def _control(self, mode: int) -> None:
        if mode in (codec.ControlMode.NONE, codec.ControlMode.CLEAR_ACKNOWLEDGEMENT):
            self.is_acknowledging = False
        elif mode in (codec.ControlMode.GET_CONFIGURATION, codec.ControlMode.GET_IDS):
            self.texts_due, self.is_acknowledging = self.texts_due + 1, True

    def _set(self, config: codec.Config, ids: codec.ConfigIds | None) -> None:
        key = config.key.lower()
        is_taken = self._is_writable(key, ids)
        self.is_acknowledging |= is_taken or self.behaviour.acknowledges_refused
        if not is_taken:
            self.events.append(f"refused {key}")
            return
        self.settings[key] = config.value
        self.events.append(f"{key} = {config.value}")
        if key == "control:flight_anim":
            self._refuse(key)
        if key == "general:navdata_demo" and (_is_true(config.value) or not self.behaviour.demo_ends_bootstrap):
            self.is_bootstrapped = True
        if key.endswith("_id") and config.value.startswith("-"):
            self.settings[key] = NO_ID  # "-all", or one id: that configuration is deleted
        if key == "control:outdoor":
            where = "outdoor" if _is_true(config.value) else "indoor"
            for name in ("euler_angle_max", "control_vz_max", "control_yaw"):
                self.settings[f"control:{name}"] = self.settings[f"control:{where}_{name}"]
        self._apply()

    def _is_writable(self, key: str, ids: codec.ConfigIds | None) -> bool:
        if key not in self.settings or key in _READ_ONLY:
            return False
        if ids is None or (key.startswith("custom:") and key.endswith("_id")):
            return self.behaviour.version == 1 or key not in _OF_SESSIONS
        own = tuple(self.settings[f"custom:{name}_id"] for name in ("session", "profile", "application"))
        return (ids.session, ids.user, ids.application) == own != (NO_ID,) * 3

    def _apply(self) -> None:
        flight = self.flight
        flight.max_tilt = self._number("control:euler_angle_max", 0.0, 0.52, flight.max_tilt)
        flight.max_climb = self._number("control:control_vz_max", 0.0, 2000.0, 1000 * flight.max_climb) / 1000
        flight.max_yaw_rate = self._number("control:control_yaw", 0.0, 6.11, flight.max_yaw_rate)
        flight.ceiling = self._number("control:altitude_max", 500.0, 100_000.0, 1000 * flight.ceiling) / 1000

    def _number(self, key: str, least: float, most: float, default: float) -> float:
        """Return a setting within its range, which the drone keeps. An unreadable one has no effect."""
        try:
            value = float(self.settings[key])
        except ValueError:
            value = default
        if not math.isfinite(value):
            value = default
        bounded = min(max(value, least), most)
        if bounded != value:
            self.settings[key] = f"{bounded:g}"
        return bounded

    # Navdata.

    def measured(self) -> Measurement:
        """Return what the drone's sensors measure."""
        flight = self.flight
        x, y, _ = flight.velocity.tolist()
        cos, sin = math.cos(flight.yaw), math.sin(flight.yaw)
        gravity = (flight.rotation.T @ (0.0, 0.0, units.STANDARD_GRAVITY)).tolist()
        return Measurement(
            yaw=flight.yaw,
            velocity=BodyVelocity(cos * x + sin * y, cos * y - sin * x),
            charge=self.charge,
            height=flight.height,
            roll=flight.roll,
            pitch=flight.pitch,
            rates=(0.0, 0.0, flight.yaw_rate),
            acceleration=(gravity[0], gravity[1], gravity[2]),
            is_flying=flight.is_flying,
            time_s=flight.time,
        )

    def _ctrl_state(self) -> int:
        flight = self.flight
        state, minor = STATES[flight.phase], 0
        if state is codec.FlightState.TAKING_OFF and flight.time < self._took_off_at + TAKE_OFF_DELAY_S:
            state = codec.FlightState.LANDED  # the bit FLYING comes first
        elif state is codec.FlightState.LANDED and self._took_off_at > -math.inf and self.behaviour.loops_when_landed:
            state = codec.FlightState.LOOPING
        if state is codec.FlightState.FLYING and flight.is_hovering:
            state, minor = codec.FlightState.HOVERING, LOST_COMMUNICATION if self._is_lost else 0
        return state << MAJOR_STATE_SHIFT | minor

    def _options(self) -> tuple[codec.Option, ...]:
        """Return the options of the mode."""
        measured, height = self.measured(), round(1000 * self.flight.height)
        field = (self.flight.rotation.T @ FIELD).tolist()
        sizes = _OPTION_BYTES[self.behaviour.version]
        made = (
            blocks.demo_option(units.demo(measured, self._ctrl_state())),
            blocks.time_option(self.flight.time),
            blocks.physical_option(units.physical(measured)),
            blocks.ultrasound_option(max(height, BLIND_ZONE_MM)),
            blocks.detections_option((), sizes[codec.Tag.VISION_DETECT]),
            blocks.pressure_option(blocks.Pressure(250, round(101_325 - 12 * self.flight.height))),
            blocks.magnetometer_option(blocks.Magnetometer(units.magnetometer(field), True)),
            blocks.wifi_option(1.0),
        )
        data = dict(made)
        mask = -1 if self._is_full else self._mask | 1 << codec.Tag.DEMO | 1 << codec.Tag.VISION_DETECT
        return tuple(codec.Option(tag, data.get(tag, bytes(size))) for tag, size in enumerate(sizes) if mask & 1 << tag)

    @property
    def _mask(self) -> int:
        with contextlib.suppress(ValueError):
            return int(self.settings["general:navdata_options"])
        return 0


def _is_true(value: str) -> bool:
    """Return a setting's value as the drone reads it: by its first letter."""
    return value.upper().startswith("T")


def _as_answered(value: str, default: bool | int | float | str) -> str:
    """Return a setting's value as the drone prints those of this type."""
    if isinstance(default, bool):
        return "TRUE" if _is_true(value) else "FALSE"
    try:
        number = math.nan if isinstance(default, str) else float(value)
    except ValueError:
        return value
    if math.isnan(number):
        return value
    return f"{number:.7e}" if isinstance(default, float) else f"{number:.0f}"


def _steering(command: codec.Pcmd | codec.PcmdMag) -> Sticks:
    """Return a command as the drone flies it: beyond a share of 1 it is clamped."""
    if not command.flags & codec.PROGRESSIVE:
        return Sticks()
    shares = (command.roll, command.pitch, command.yaw, command.gaz)
    return Sticks(False, *(SHARE.clamped(each) for each in shares))
