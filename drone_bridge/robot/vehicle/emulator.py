# SPDX-License-Identifier: Apache-2.0
"""RobotEmulator: simulated tracked robot, with discovery over UDP, control over TCP, and several drivers at once.

    python3 -m drone_bridge.robot.vehicle.emulator --name saber

Runs in real time. It prints a line for each event: listening, connections, binds, motor stops with their reason, and
the final position.
"""

import argparse
import contextlib
import math
import socket
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from drone_bridge.motion.planar_pose import PlanarPose
from drone_bridge.net.connector import Cancellation
from drone_bridge.net.link_loop import Connected, Disconnected, ReceivedData
from drone_bridge.net.tcp_connection import StreamOptions, StreamPeer
from drone_bridge.net.tcp_port import TcpPort
from drone_bridge.programs.emulation import Emulation
from drone_bridge.programs.options import (
    ProgramParser,
    add_address,
    add_choice,
    add_flag,
    add_number,
    add_run,
    not_negative,
    port,
    positive,
)
from drone_bridge.programs.program import TrajectoryFile, print_event, run_program
from drone_bridge.robot import codec
from drone_bridge.robot.discovery import MAX_NAME_BYTES, DiscoveryResponder, DiscoveryRoute, RobotPort
from drone_bridge.robot.units import SkidSteer
from drone_bridge.robot.vehicle.device.control import MAX_DRIVERS, RobotControl
from drone_bridge.robot.vehicle.device.dialects import EMULATED, RobotDialect
from drone_bridge.robot.vehicle.device.drivers import Instant
from drone_bridge.robot.vehicle.device.served_driver import ServedDriver
from drone_bridge.robot.vehicle.device.vehicle import HEADLIGHT, TRACKS, DrivenSubsystem
from drone_bridge.wire.addresses import address_name, peer_name
from drone_bridge.wire.events import DisconnectPeerError, RemoteProtocolError

# Physics: two motors with their drivers, a battery and a light.


MOTOR_TIME_CONSTANT_S = 0.1
AMBIENT_C = 22.0
EMPTY_FRACTION = 0.85  # of the full voltage, when discharged
IDLE_CURRENT_A = 0.2  # of the electronics
ROLLING_CURRENT_A = 2.0  # of a motor at full speed
TURNING_CURRENT_A = 4.0  # additional, of each motor at full speed against the other one: tracks skid
ACCELERATION_CURRENT_A = 6.0  # additional, of a motor at rest with a setting of full speed
BATTERY_RESISTANCE_OHM = 0.05
HEATING_K_PER_A2_S = 0.02
COOLING_PER_S = 0.02


#: Steps of the physics per second.
STEP_RATE = 50.0


@dataclass(frozen=True, slots=True)
class Chassis:
    """Constants of the chassis."""

    wheel_separation: float = 0.5  # m between the tracks
    max_speed: float = 1.0  # m/s of a track at full speed
    full_voltage: float = 12.6  # V
    capacity: float = 7.0  # Ah


@dataclass(slots=True)
class Motor:
    """Motor of one track."""

    setting: int = 0  # -FULL_SPEED to FULL_SPEED
    speed: float = 0.0  # of full speed, -1 to 1
    current: float = 0.0  # A
    temperature: float = AMBIENT_C  # degrees Celsius

    def advance(self, step_s: float, other_speed: float) -> None:
        """Advance the time. `other_speed` is the other motor's."""
        target = self.setting / codec.FULL_SPEED
        missing = abs(target - self.speed)
        skidding = abs(self.speed - other_speed) / 2
        self.current = (
            ROLLING_CURRENT_A * abs(self.speed) + TURNING_CURRENT_A * skidding + ACCELERATION_CURRENT_A * missing
        )
        self.speed = target + (self.speed - target) * math.exp(-step_s / MOTOR_TIME_CONSTANT_S)
        heating = HEATING_K_PER_A2_S * self.current**2
        settled = AMBIENT_C + heating / COOLING_PER_S
        self.temperature = settled + (self.temperature - settled) * math.exp(-COOLING_PER_S * step_s)


@dataclass(slots=True)
class TrackedRobot:
    """State of the robot. It starts at the origin facing along x. The heading increases to the left."""

    chassis: Chassis = field(default_factory=Chassis)
    left: Motor = field(default_factory=Motor)
    right: Motor = field(default_factory=Motor)
    is_light_on: bool = False
    time: float = 0.0  # s
    x: float = 0.0  # m
    y: float = 0.0  # m
    heading: float = 0.0  # rad
    charge: float = 1.0  # of the battery's capacity

    @property
    def current(self) -> float:
        """Battery current, A."""
        return IDLE_CURRENT_A + self.left.current + self.right.current

    @property
    def voltage(self) -> float:
        """Battery voltage under load, V."""
        unloaded = self.chassis.full_voltage * (EMPTY_FRACTION + (1 - EMPTY_FRACTION) * self.charge)
        return unloaded - BATTERY_RESISTANCE_OHM * self.current

    @property
    def speed(self) -> float:
        """Forward speed, m/s."""
        return self.chassis.max_speed * (self.left.speed + self.right.speed) / 2

    @property
    def turn_rate(self) -> float:
        """Turn rate, positive to the left, rad/s."""
        return self.chassis.max_speed * (self.right.speed - self.left.speed) / self.chassis.wheel_separation

    def drive(self, left: int, right: int) -> None:
        """Set both motors, each from -FULL_SPEED to FULL_SPEED."""
        self.left.setting, self.right.setting = left, right

    def stop(self) -> None:
        self.drive(0, 0)

    def advance(self, step_s: float) -> None:
        """Advance along an arc, and discharge the battery."""
        if self.charge == 0.0:
            self.stop()
        speeds = self.left.speed, self.right.speed
        self.left.advance(step_s, speeds[1])
        self.right.advance(step_s, speeds[0])
        pose = PlanarPose(self.x, self.y, self.heading)
        self.x, self.y, self.heading = pose.moved(step_s, self.speed, self.turn_rate)
        self.charge = max(0.0, self.charge - self.current * step_s / 3600 / self.chassis.capacity)
        self.time += step_s


# The simulated robot towards its drivers: tracks, a headlight, and motor sensors.


_MOTORS = (codec.MotorSensors(0, 1, 2, 3), codec.MotorSensors(0, 4, 5, 6))  # left, right; they share the battery
#: Available subsystems by name.
SUBSYSTEMS = {
    TRACKS: DrivenSubsystem(codec.SubsystemType.SKID_STEER, TRACKS, _MOTORS),
    HEADLIGHT: DrivenSubsystem(codec.SubsystemType.LIGHTS, HEADLIGHT),
}


class SimulatedRobot:
    """RobotVehicle whose motors drive the physics."""

    def __init__(
        self,
        physics: TrackedRobot,
        names: Sequence[str] = tuple(SUBSYSTEMS),
        *,
        appears_s: float = 0.0,
        is_verbose: bool = False,
    ) -> None:
        """Prepare the robot.

        Args:
            physics: of the robot.
            names: of the subsystems, in order.
            appears_s: the age of the robot at which its subsystems and sensors appear.
            is_verbose: print each change of the motors.
        """
        self.physics = physics
        self._subsystems = tuple(SUBSYSTEMS[name] for name in names)
        self._appears_s = appears_s
        self._is_verbose = is_verbose

    @property
    def _has_appeared(self) -> bool:
        return self.physics.time >= self._appears_s

    @property
    def subsystems(self) -> Sequence[DrivenSubsystem]:
        return self._subsystems if self._has_appeared else ()

    def drive(self, left: int, right: int) -> None:
        if self._is_verbose and (left, right) != (self.physics.left.setting, self.physics.right.setting):
            print_event(f"motors {left} {right}")
        self.physics.drive(left, right)

    def stop(self) -> None:
        self.physics.stop()

    def light(self, number: int, is_on: bool) -> None:
        del number
        self.physics.is_light_on = is_on
        print_event(f"light {'on' if is_on else 'off'}")

    def sensors(self) -> list[codec.Sensor]:
        if not self._has_appeared:
            return []
        full_voltage_mv = round(1000 * self.physics.chassis.full_voltage)
        battery = codec.Sensor(codec.SensorType.BATTERY, "battery", round(1000 * self.physics.voltage), full_voltage_mv)
        sides = (("left", self.physics.left), ("right", self.physics.right))
        return [battery, *(sensor for side, motor in sides for sensor in _motor_sensors(side, motor))]

    def readings(self) -> list[codec.SensorReading]:
        """Return the current values of all sensors."""
        return [codec.SensorReading(number, sensor.value or 0) for number, sensor in enumerate(self.sensors())]


def _motor_sensors(side: str, motor: Motor) -> Iterable[codec.Sensor]:
    yield codec.Sensor(codec.SensorType.THERMOMETER, f"{side} motor", round(100 * motor.temperature))
    yield codec.Sensor(codec.SensorType.AMMETER, f"{side} motor", round(1000 * motor.current))
    yield codec.Sensor(codec.SensorType.MOTOR_PWM, f"{side} motor", motor.setting)


# Serving drivers over TCP, and advancing the simulation.


COLUMNS = ("time", "x", "y", "heading", "left", "right", "voltage", "light")


class RobotEmulator(Emulation):
    """Server for drivers, and clock of the simulation."""

    step_s = 1 / STEP_RATE

    def __init__(
        self, robot: SimulatedRobot, control: RobotControl, port: RobotPort, options: argparse.Namespace
    ) -> None:
        self._robot, self._control, self._port, self._options = robot, control, port, options
        self._silence_s = options.silence_timeout or math.inf
        self._period_s = options.sensor_period or control.readings_period_s or SENSOR_PERIOD_S
        self._readings_s = self._period_s  # next time of the robot
        self._drivers: dict[StreamPeer, ServedDriver] = {}

    @property
    def time_s(self) -> float:
        return self._robot.physics.time

    def step(self, now_s: float) -> None:
        self._robot.physics.advance(self.step_s)
        for driver in self._control.silent_drivers(now(), self._silence_s):
            self._end(driver.peer, f"silent for {self._silence_s:g} s")
        if self.time_s >= self._readings_s:
            self._readings_s = self.time_s + self._period_s
            self._control.send_readings(self._robot.readings())

    def row(self) -> Sequence[float | str]:
        vehicle = self._robot.physics
        speeds = vehicle.left.setting, vehicle.right.setting
        state = (vehicle.time, vehicle.x, vehicle.y, vehicle.heading)
        return (*state, *speeds, vehicle.voltage, float(vehicle.is_light_on))

    def receive(self, link: Any, event: Any, now_s: float) -> None:
        """Accept connections, execute received data, and answer discovery requests."""
        peer = event.source
        if isinstance(peer, tuple):
            self._port.send(self._options.name.encode(), peer)
            print_event(f"answered {peer_name(peer)} as {self._options.name}")
        elif isinstance(event, Connected):
            self._begin(peer)
        elif isinstance(event, ReceivedData):
            self._converse(peer, event.data)
        elif isinstance(event, Disconnected):
            self._converse(peer, b"")
            self._end(peer, "connection closed by the driver" if event.is_regular else event.sentence.rstrip("."))

    def _begin(self, peer: StreamPeer) -> None:
        if len(self._drivers) >= MAX_DRIVERS:
            print_event(f"refused {peer}: {MAX_DRIVERS} drivers are already connected")
            self._port.disconnect(peer)
            return
        print_event(f"connected to {peer}")
        self._drivers[peer] = ServedDriver(self._control, peer, partial(self._port.send, to=peer), now)

    def _converse(self, peer: StreamPeer, data: bytes) -> None:
        """Execute the packets in a driver's data. Empty data is the end of its stream."""
        if not (driver := self._drivers.get(peer)):
            return
        try:
            if data:
                driver.receive_data(data)
            else:
                driver.receive_eof()
            while driver.handle_next():
                pass
        except (RemoteProtocolError, DisconnectPeerError) as error:
            self._end(peer, str(error))

    def _end(self, peer: StreamPeer, reason: str) -> None:
        if driver := self._drivers.pop(peer, None):
            driver.leave(reason)
        self._port.disconnect(peer)

    def disconnect_all(self) -> None:
        """Close all connections, and the port."""
        for peer in tuple(self._drivers):
            self._end(peer, "connection closed by the robot")
        self._port.close()


def now() -> Instant:
    """Return the time."""
    return Instant(time.monotonic(), time.time_ns() // 1_000_000)


# Program.


SENSOR_PERIOD_S = 1.0  # between readings, unless the dialect has its own period


def serve(options: argparse.Namespace, cancellation: Cancellation, stack: contextlib.ExitStack) -> int:
    """Serve until cancelled. Raises LinkError, OSError and ValueError."""
    trajectory = TrajectoryFile.wanted(options.trajectory, COLUMNS, stack)
    chassis = Chassis(options.wheel_separation, options.max_wheel_speed)
    vehicle = TrackedRobot(chassis)
    robot = SimulatedRobot(vehicle, options.subsystems, is_verbose=options.verbose)
    control = EMULATED[options.dialect](robot, print_event)
    if options.dialect is RobotDialect.DOCUMENT:
        control.firmware = codec.FirmwareInfo("emulator", "1", codec.PROTOCOL_VERSION)
    stream = StreamOptions(expects_acknowledgements=True)
    drivers = TcpPort(options.host, options.port, options=stream, has_small_buffers=True)
    link = RobotPort(drivers, None if options.no_discovery else _responder(options))
    server = RobotEmulator(robot, control, link, options)
    try:
        print_event(f"listening on {address_name(options.host, link.port)}")
        server.run([link], options, cancellation, trajectory)
    finally:
        server.disconnect_all()
    print_event(
        f"ended: {vehicle.time:.2f} s, at x {vehicle.x:.3f} m, y {vehicle.y:.3f} m, "
        f"heading {math.degrees(vehicle.heading):.1f} degrees, battery {vehicle.voltage:.2f} V"
    )
    return 0


def _responder(options: argparse.Namespace) -> DiscoveryResponder:
    route = DiscoveryRoute(codec.DISCOVERY_GROUP, options.discovery_port, options.discovery_interface)
    responder = DiscoveryResponder(route)
    print_event(f"discovery on {route.address}:{responder.port} through {route.interface}")
    return responder


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program. Return its exit status."""
    return run_program("robot", serve, parse(arguments))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line. Exits with a message on errors."""
    parser = ProgramParser("emulate", "robot", "A simulated tracked robot, in real time.", "after --duration")
    link = parser.add_argument_group("link")
    add_address(link, codec.TCP_PORT)
    add_choice(link, "--dialect", RobotDialect.DOCUMENT, "variant of the protocol")
    timeout = "silence after which a driver with bound subsystems is dropped and its motors are stopped, s; 0: never"
    add_number(
        link, "--silence-timeout", 2.0, f"{timeout}; robotd-1.2 drops drivers only while 16 are connected", not_negative
    )
    discovery = parser.add_argument_group("discovery")
    discovery.add_argument("--name", type=_name, default=socket.gethostname(), help="name of the robot (%(default)s)")
    add_flag(discovery, "--no-discovery", "do not answer discovery")
    add_number(discovery, "--discovery-port", codec.DISCOVERY_PORT, "0: a free one", port)
    discovery.add_argument("--discovery-interface", default="127.0.0.1", help="its address; 0.0.0.0: all (%(default)s)")
    robot = parser.add_argument_group("robot")
    robot.add_argument(
        "--subsystems",
        type=_subsystems,
        default=tuple(SUBSYSTEMS),
        metavar="tracks,headlight",
        help="its subsystems, in list order; robotd's Java driver supports only tracks (%(metavar)s)",
    )
    add_number(robot, "--wheel-separation", SkidSteer().wheel_separation, "m")
    add_number(robot, "--max-wheel-speed", SkidSteer().max_wheel_speed, "speed at 2048, m/s")
    run_options = add_run(parser, duration="seconds")
    run_options.add_argument(
        "--sensor-period", type=positive, help=f"period of readings, s ({SENSOR_PERIOD_S:g}; 0.25 with protocol-1)"
    )
    add_flag(run_options, "--verbose", "also report each change of the motors")
    return parser.parse_args(arguments)


def _name(text: str) -> str:
    """Check a robot's name."""
    if not 0 < len(text.encode()) <= MAX_NAME_BYTES:
        raise argparse.ArgumentTypeError(f"must have 1 to {MAX_NAME_BYTES} bytes, not {text!r:.300}")
    return text


def _subsystems(text: str) -> tuple[str, ...]:
    """Parse comma-separated names of subsystems."""
    names = tuple(name.strip() for name in text.split(","))
    if len(set(names)) < len(names) or not SUBSYSTEMS.keys() >= set(names):
        raise argparse.ArgumentTypeError(f"must be {' and '.join(SUBSYSTEMS)}, each at most once, not {text!r}")
    return names


if __name__ == "__main__":
    sys.exit(main())
