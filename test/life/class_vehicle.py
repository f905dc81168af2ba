# SPDX-License-Identifier: Apache-2.0
"""Emulated vehicles of the classes in robots/, each with its own decoding of what it is told."""

import math
import struct
from collections import Counter
from functools import reduce
from operator import xor

from house import make_loop
from std_srvs.srv import Trigger
from vehicle import Told, Vehicle
from virtual_link import SERVER
from virtual_time import Process

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.net.connector import Cancellation
from drone_bridge.robot_class.bridge import make_node
from drone_bridge.robot_class.robot import further_links, is_stream, sized
from drone_bridge.robot_class.vehicle import emulator
from drone_bridge.robot_class.vehicle.robot_session import RobotClassVehicleSession
from drone_bridge.robots.arduino import Arduino
from drone_bridge.robots.create2 import Create2
from drone_bridge.robots.hoverboard import Hoverboard
from drone_bridge.robots.kobuki import Kobuki
from drone_bridge.robots.neato import Neato
from drone_bridge.robots.pioneer import Pioneer
from drone_bridge.robots.robomaster import RoboMaster

#: Time after which an emulated battery is low, s.
LOW_S = 0.85 * 3600.0 - 10.0


class ClassVehicle(Vehicle):
    """Base class of one robot's vehicle. `SERVICES` are payloads of its requests, as the wire must have them."""

    robot, LAG_S, RECONNECTS_S = None, 0.3, 12.0
    SERVICES, LONGEST_STEP_S = {}, 0.26

    def __init_subclass__(cls):
        if robot := cls.robot:
            cls.name, cls.bridge, cls.is_stream = robot.name, make_node(robot), is_stream(robot)
            cls.requests, cls.robot = tuple(cls.SERVICES), sized(robot, cls.parameters.get)

    def __init__(self, life):
        super().__init__(life)
        self._buffers, self.seen, self.world = {}, Counter(), None

    def ports(self):
        return {link.port: name for name, link in further_links(self.robot).items()}

    def start(self):
        """Start as `emulator.emulate` does: its pose and counters begin at 0, wherever it stands."""
        self._buffers, self.world = {}, emulator._World(self.robot, Cancellation())
        world, link, port = self.world, self.wire.end(SERVER), next(iter(self.ports()), 0)
        world.session = RobotClassVehicleSession(
            self.robot, world.parameters, world.telemetry, report_port=port, is_body=True, is_line=False
        )
        world.loop = make_loop(f"{self.name} emulator", link, world.session, world, world.clock)
        world.loop.start()
        world.body._touched = lambda within_m: (
            tuple(self.robot.bumpers.values())[:1]
            if self.motion.is_blocked and (within_m or world.body.velocity.forward > 0.0)
            else ()
        )
        self._stepped_s = self.life.now_s
        Process.current.every(emulator.STEP_S, self._step)

    def allows(self, act):
        return bool(self.robot.bumpers) if act == "bump" else super().allows(act)

    def bump(self, begins):
        self.motion.block(begins)

    def _step(self):
        """Advance by the steps that are due: several if the life is drowsy."""
        seconds, self._stepped_s = self.life.now_s - self._stepped_s, self.life.now_s
        steps = round(min(seconds, self.LONGEST_STEP_S) / emulator.STEP_S)
        self.world.step(emulator.STEP_S * steps)

    def hear(self, data, source):
        if self.life.now_s - self._stepped_s > 2 * emulator.STEP_S and not self.process.is_stalled:
            self._step()  # as the life was drowsy
        buffer = self._buffers.get(source, b"") + data if self.is_stream else data
        while size := self.size_of(buffer):
            packet, buffer = buffer[:size], buffer[size:]
            self.seen[packet] += 1
            if told := self.decoded(packet):
                self.tell(told)
        self._buffers[source] = buffer

    def forget(self, source):
        self._buffers.pop(source, None)

    def size_of(self, data):
        """Return the size of the first packet, 0 if it is incomplete."""
        return len(data)

    def decoded(self, packet):
        """Return the velocity in a packet, or None."""
        raise NotImplementedError

    def request(self, name, flag):
        payload = self.SERVICES[name]
        before = self.seen[payload]
        return Trigger.Request(), lambda: "" if self.seen[payload] > before else f"{payload!r} was not sent"

    def body(self):
        got = self.world.body.velocity
        return Told(got.forward, got.left, got.up, got.turn)

    def conditions(self):
        is_low = self.world.body.time_s > LOW_S
        return (*super().conditions(), *(("battery",) if is_low else ()))

    def roots(self):
        return (self.world.session,)

    def two_wheels(self, asked, axle_m, top, fastest_turn):
        """Bound a velocity by each axis' maximum, and then both wheels by the same share."""
        forward, turn = max(-top, min(top, asked.forward)), max(-fastest_turn, min(fastest_turn, asked.turn))
        share = max(1.0, (abs(forward) + abs(turn) * axle_m / 2) / top)
        return Told(forward / share, turn=turn / share)


class Create2Vehicle(ClassVehicle):
    robot = Create2
    SIZES = {128: 1, 131: 1, 135: 1, 140: 5, 143: 1, 145: 5, 173: 1}  # noqa: RUF012 - of the opcodes that a bridge sends
    SERVICES = {"beep": bytes([140, 0, 1, 72, 16]), "clean": bytes([135])}  # noqa: RUF012
    is_lifted = False

    def __init__(self, life):
        super().__init__(life)
        vehicle, sensor, decode = self, Create2.sensor, Create2.decode_command

        def read(self, number):
            """Let a dropped wheel end the safe mode, as the real one does."""
            self.mode = 1 if vehicle.is_lifted else self.mode
            return bytes([12]) if number == 7 and vehicle.is_lifted else sensor(self, number)

        def drive(self, packet):
            return BodyVelocity() if vehicle.is_lifted and packet[0] == 145 else decode(self, packet)

        self.robot = type("Create2", (self.robot,), {"sensor": read, "decode_command": drive})

    def lift(self, begins):
        self.is_lifted = begins
        self.tell(Told())

    def size_of(self, data):
        if not data:
            return 0
        code = data[0]
        size = self.SIZES.get(code, 2) if code != 148 or len(data) < 2 else 2 + data[1]
        return size if len(data) >= size else 0

    def decoded(self, packet):
        if packet[0] == 135:  # its body moves by itself until the next drive
            self.motion.changed_s = self.life.now_s
        self.cleans = packet[0] == 135 or (self.cleans and packet[0] not in (131, 173))
        if packet[0] == 173 or (packet[0] == 145 and self.is_lifted):
            return Told()
        if packet[0] != 145:
            return None
        right, left = (each / 1000 for each in struct.unpack(">hh", packet[1:]))
        return Told((left + right) / 2, turn=(right - left) / 0.235)

    def bounded(self, asked):
        return self.two_wheels(asked, 0.235, 0.5, 2 * 0.5 / 0.235)


class KobukiVehicle(ClassVehicle):
    robot = Kobuki
    SERVICES = {"sound_on": b"\xaa\x55\x03\x04\x01\x00\x06"}  # noqa: RUF012

    def size_of(self, data):
        return 4 + data[2] if len(data) > 3 and len(data) >= 4 + data[2] else 0

    def decoded(self, packet):
        if reduce(xor, packet[2:]):
            return None
        parts, at = {}, 3
        while at < len(packet) - 1:
            parts[packet[at]] = packet[at + 2 : at + 2 + packet[at + 1]]
            at += 2 + packet[at + 1]
        if 1 not in parts:
            return None
        speed, radius = struct.unpack("<hh", parts[1])
        if radius == 0:
            return Told(speed / 1000)
        if abs(radius) == 1:
            return Told(turn=math.copysign(speed / 115, radius) if speed * radius > 0 else speed * radius / 115)
        turn = speed / (radius + math.copysign(115, radius))
        return Told(radius * turn / 1000, turn=turn)

    def bounded(self, asked):
        return self.two_wheels(asked, 0.23, 0.7, math.radians(110))


class PioneerVehicle(ClassVehicle):
    robot, watchdog_s = Pioneer, 2.0

    def __init__(self, life):
        super().__init__(life)
        self._forward = self._turn = 0.0

    def size_of(self, data):
        return 3 + data[2] if len(data) > 2 and len(data) >= 3 + data[2] else 0

    def decoded(self, packet):
        kind = packet[3]
        if kind in (2, 29):
            self._forward = self._turn = 0.0
        elif kind in (11, 21):
            sign, size = struct.unpack_from("<BH", packet, 4)
            value = size if sign == 0x3B else -size
            if kind == 11:
                self._forward = value / 1000
            else:
                self._turn = math.radians(value)
        return Told(self._forward, turn=self._turn)

    def bounded(self, asked):
        return Told(max(-2.2, min(2.2, asked.forward)), turn=max(-8.7, min(8.7, asked.turn)))


class RoboMasterVehicle(ClassVehicle):
    robot, watchdog_s = RoboMaster, 0.5
    SERVICES = {name: f"robotic_gripper {name[:-8]} 1;".encode() for name in ("open_gripper", "close_gripper")}  # noqa: RUF012

    def size_of(self, data):
        return data.find(b";") + 1

    def decoded(self, packet):
        words = packet.decode().strip(";").split()
        if words[:2] == ["chassis", "speed"]:
            x, y, z = (float(words[words.index(axis) + 1]) for axis in "xyz")
            return Told(x, -y, turn=-math.radians(z))
        return Told() if words == ["quit"] else None

    def velocity(self, rng):
        return super().velocity(rng)._replace(left=rng.choice((0.0, -0.3, 0.6)))

    def bounded(self, asked):
        return asked


class ArduinoVehicle(ClassVehicle):
    robot, watchdog_s = Arduino, 2.0
    parameters = {"wheel_separation": 0.5, "wheel_radius": 0.04, "enc_counts_per_rev": 2400.0}  # noqa: RUF012

    def size_of(self, data):
        return data.find(b"\r") + 1

    def decoded(self, packet):
        left, right = (int(each) / 2400 * math.tau * 0.04 / 0.033 for each in packet.split()[1:] or (0, 0))
        return Told((left + right) / 2, turn=(right - left) / 0.5) if packet.startswith(b"m") else None

    def bounded(self, asked):
        return self.two_wheels(asked, 0.5, 0.5, 2 * 0.5 / 0.35)


class HoverboardVehicle(ClassVehicle):
    robot, watchdog_s, QUANTUM, DRIFT, turns = Hoverboard, 0.8, 0.02, 0.01, (-2.0, -0.3, 0.5, 1.7)
    parameters = {"wheel_separation": 0.6, "wheel_radius": 0.1}  # noqa: RUF012

    def __init__(self, life):
        super().__init__(life)
        self.motion.slowest_m_s, self.motion.axle_m = 60 / 90 / 0.125 * math.tau * 0.1 / 60, 0.6

    def size_of(self, data):
        return 8 * (len(data) >= 8)

    def decoded(self, packet):
        start, steer, speed, checksum = struct.unpack("<HhhH", packet)
        is_valid = (start, start ^ (steer ^ speed) & 0xFFFF) == (0xABCD, checksum)
        left, right = ((2 * speed + each) // 2 * math.tau * 0.1 / 60 for each in (steer, -steer))
        return Told((left + right) / 2, turn=(right - left) / 0.6) if is_valid else None

    def bounded(self, asked):
        return self.two_wheels(asked, 0.6, 1.0, 2 * 1.0 / 0.32)


class NeatoVehicle(ClassVehicle):
    """Its motions end by themselves, and one of no way changes nothing."""

    robot, watchdog_s = Neato, 1.0
    parameters = {"wheel_separation": 0.24}  # noqa: RUF012

    def size_of(self, data):
        return data.find(b"\n") + 1

    def decoded(self, packet):
        words = packet.split()
        if words[:1] == [b"testmode"] and words[1] == b"off":
            return Told()
        if words[:1] != [b"setmotor"] or words[2] == b"0":
            return None
        left, right, speed = (int(each) for each in words[2::2])
        unit = 0.0 if speed == 1 else speed / max(abs(left), abs(right)) / 1000
        return Told((left + right) / 2 * unit, turn=(right - left) * unit / 0.24)

    def bounded(self, asked):
        return self.two_wheels(asked, 0.24, 0.3, 2 * 0.3 / 0.248)
