# SPDX-License-Identifier: Apache-2.0
"""RobotVehicle: the emulated tracked robot, and its truth."""

import struct
from functools import partial

from house import run_emulation
from std_srvs.srv import SetBool
from vehicle import ZERO, Told, Vehicle
from virtual_link import SERVER

from drone_bridge.net.link_loop import Disconnected, ReceivedData
from drone_bridge.robot.bridge.node import RobotBridge
from drone_bridge.robot.vehicle import emulator
from drone_bridge.robot.vehicle.device.dialects import EMULATED

#: Own constants: packet types, size of one for tracks, motor setting and speed at full speed, and separation.
KEEP_ALIVE, UPDATE, TRACKS_SIZE, FULL, TRACK_M_S, APART_M = 0x01, 0x05, 6, 2048, 1.0, 0.5


class RobotVehicle(Vehicle):
    name, bridge = "robot", RobotBridge
    watchdog_s = 2.0
    requests = ("light",)

    def __init__(self, life):
        super().__init__(life)
        self._streams, self.physics, self.light = {}, emulator.TrackedRobot(), None
        self.physics.charge = life.rng.choice((1.0, 1.0, 0.01))

    def start(self):
        options = emulator.parse(["--name", "saber"])
        robot = emulator.SimulatedRobot(self.physics)
        self.physics.drive(0, 0)
        self._streams = {}
        control = EMULATED[options.dialect](robot, lambda line: None)
        link = self.wire.end(SERVER)
        self.emulation = emulator.RobotEmulator(robot, control, link, options)
        run_emulation(self.process, self.emulation, [link], options)

    def _speak(self, other):
        """Keep the other driver's connection alive while it is there."""
        if (end := self.wire.ends[SERVER]) and other is self._other:
            end.put(ReceivedData(struct.pack(">HBq", 8, KEEP_ALIVE, 0), other))
        return other is self._other

    def hear(self, data, source):
        if source in (self._other, self._left):
            return
        buffer = self._streams.get(source, b"") + data
        while len(buffer) >= 3:
            size, kind = struct.unpack_from(">HB", buffer)
            if len(buffer) < 3 + size:
                break
            payload, buffer = buffer[3 : 3 + size], buffer[3 + size :]
            if kind == UPDATE and size == TRACKS_SIZE:
                _, left, right = struct.unpack(">Hhh", payload)
                left, right = (TRACK_M_S * each / FULL for each in (left, right))
                self.tell(Told((left + right) / 2, turn=(right - left) / APART_M))
            elif kind == UPDATE:
                self.light = bool(payload[2])
            elif kind == KEEP_ALIVE:
                self.told_s = self.life.now_s
        self._streams[source] = buffer

    def forget(self, source):
        if source not in (self._other, self._left):
            self._streams.pop(source, None)
            self.tell(ZERO)

    OTHER, _other, _left = "cousin", None, None

    def share(self, begins):
        """Let another driver have both subsystems, or leave."""
        end = self.wire.ends[SERVER]
        if begins and end:
            self._other = self.wire.connect_stranger()
            name = self.OTHER.encode()
            packets = (3, struct.pack(">H", len(name)) + name), (4, b"\0\0"), (4, b"\0\1")
            data = b"".join(struct.pack(">HB", len(each), kind) + each for kind, each in packets)
            end.put(ReceivedData(data, self._other))
            self.life.every(0.5, partial(self._speak, self._other))
        elif end and self._other:
            other, self._other = self._other, None
            self._left = other
            end.put(Disconnected(other, "It has left."))
            self.life.after(0.01, lambda: self.physics.drive(300, 300))  # its motors run on
            self.motion.way += 1.0  # or another one

    def request(self, name, flag):
        return SetBool.Request(data=flag), lambda: "" if self.light is flag else f"the light is {self.light}"

    def body(self):
        return None if self.is_empty else Told(self.physics.speed, turn=self.physics.turn_rate)

    def bounded(self, asked):
        fastest = max(1.0, (abs(asked.forward) + abs(asked.turn) * APART_M / 2) / TRACK_M_S)
        return Told(asked.forward / fastest, turn=asked.turn / fastest)

    def problem(self):
        motors = self.physics.left, self.physics.right
        if any(abs(each.setting) > FULL for each in motors):
            return f"motors at {[each.setting for each in motors]}"
        return "" if all(-50.0 < each.temperature < 200.0 for each in motors) else "a motor is hot"

    @property
    def is_empty(self):
        return self.physics.charge == 0.0

    def roots(self):
        return (self.emulation,)
