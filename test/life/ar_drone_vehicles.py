# SPDX-License-Identifier: Apache-2.0
"""ArdroneVehicle and DroneguiVehicle: an emulated AR.Drone, alone and behind its GUI."""

import json
import math
import re
import struct
from unittest import mock

from flying_vehicle import FlyingVehicle
from house import run_emulation
from vehicle import ZERO, Told
from virtual_link import CLIENT, SERVER, DatagramEnd, Datagrams

from drone_bridge.ardrone.bridge import ArdroneBridge
from drone_bridge.ardrone.codec import CONTROL, NAVDATA
from drone_bridge.ardrone.vehicle.device import EmulatedArdrone, FirmwareBehaviour
from drone_bridge.ardrone.vehicle.emulator import __main__ as ardrone
from drone_bridge.dronegui.bridge import DroneGuiBridge
from drone_bridge.dronegui.vehicle.emulator import __main__ as dronegui
from drone_bridge.net.link_loop import ReceivedData

PCMD = re.compile(rb"AT\*PCMD(?:_MAG)?=\d+,(-?\d+),(-?\d+),(-?\d+),(-?\d+),(-?\d+)")

#: Flight time after which an emulated battery is low, s. At 20 %, an AR.Drone takes off no more.
LOW_S = 0.8 * 720.0 - 10.0


class ArDroneVehicle(FlyingVehicle):
    """What both have in common: the flight. Told are shares of the deflections, forward, left, up and turning left."""

    RECONNECTS_S, HOVERS, CEILING_M, unattended_s = 8.0, True, 3.0, 60.0
    STANDING, LANDING = ("landed", "emergency"), ("landing",)
    requests = "takeoff", "land", "reset", "emergency"

    def __init__(self, life):
        super().__init__(life)
        self.flight = ardrone.ArDroneFlight(0.2, life.seed)

    def velocity(self, rng):
        return Told(rng.choice((-0.5, 0.5, 1.0)), rng.choice((0.0, 0.4)), rng.choice((0.0, 0.2, -0.2)), 0.3)

    def switch_off(self, *, closes):
        super().switch_off(closes=closes)
        self.flight = ardrone.ArDroneFlight(0.2, self.life.seed)  # carried home

    def switch_on(self):
        self.flight._wind._steady[:2] = self.wind
        super().switch_on()

    @property
    def phase(self):
        return self.flight.phase.value

    @property
    def flown(self):
        return *self.flight.position[:2].tolist(), self.flight.yaw

    @property
    def height(self):
        return self.flight.height

    @property
    def speed(self):
        return math.hypot(*self.flight.velocity.tolist()) if self.phase == "flying" else 0.0

    def conditions(self):
        return "landing", "emergency", *(("battery",) if self.flight.flown_s > LOW_S else ())


class ArdroneEnd(DatagramEnd):
    """The bridge's end of commands and navdata. There is no control port."""

    def send(self, data, to):
        if to != CONTROL:
            (self.wire.navdata if to == NAVDATA else self.wire).send(CLIENT, bytes(data), to)


class ArdroneWire(Datagrams):
    """Two ports of the drone."""

    def __init__(self, network, names=None):
        super().__init__(network)
        self.navdata = Datagrams(network)

    def end(self, side):
        if side == SERVER:
            return super().end(side)
        end = self.ends[CLIENT] = ArdroneEnd(self, CLIENT)
        self.navdata.ends[CLIENT] = mock.Mock(put=lambda event: end.put(ReceivedData(event.data, NAVDATA)))
        return end

    def remove(self, side, *, closes=True):
        super().remove(side)
        self.navdata.remove(side)


class ArdroneVehicle(ArDroneVehicle):
    name, bridge, WIRE = "ardrone", ArdroneBridge, ArdroneWire
    parameters = {"control_port": 0, "video_port": 0}  # noqa: RUF012
    requests, watchdog_s = (*ArDroneVehicle.requests, "flat_trim"), 2.0

    def start(self):
        options = ardrone.parse(["--control-port", "0", "--ftp-port", "0", "--video-port", "0"])
        self.drone = EmulatedArdrone(self.flight, FirmwareBehaviour(), charge=1.0, is_bootstrapped=False)
        ends = [self.wire.end(SERVER), self.wire.navdata.end(SERVER)]
        with mock.patch.object(ardrone, "DatagramPort", side_effect=ends):
            self.program = ardrone.DroneProgram(self.drone, options, mock.Mock())
        run_emulation(self.process, self.program, ends, options)

    def hear(self, data, source):
        for flags, *shares in PCMD.findall(data):
            roll, pitch, gas, yaw = (struct.unpack("<f", struct.pack("<i", int(each)))[0] for each in shares)
            self.tell(Told(-pitch, -roll, gas, -yaw) if int(flags) & 1 else ZERO)

    def roots(self):
        return self.program, self.drone


class DroneguiVehicle(ArDroneVehicle):
    name, bridge = "dronegui", DroneGuiBridge
    NEEDS_REPORTS = False  # it flies a GUI that sends no navdata, too
    parameters = {"video_port": 0, "limits.land_unattended": 60.0}  # noqa: RUF012

    def __init__(self, life):
        super().__init__(life)
        self._is_bootstrapped = life.rng.random() < 0.8

    def start(self):
        options = dronegui.parse(["--no-video", "--bootstrapped"])
        dialect = dronegui.GuiDialect(navdata_port=options.navdata_port, is_bootstrapped=self._is_bootstrapped)
        link = self.wire.end(SERVER)
        link.loopback_host = "127.0.0.1"
        self.program = dronegui.GuiProgram(self.flight, dialect, link, options, None)
        run_emulation(self.process, self.program, [link], options)

    def conditions(self):
        return (*super().conditions(), *(() if self._is_bootstrapped else ("navdata",)))

    def hear(self, data, source):
        state = json.loads(data)["state"]
        is_hover = state["hover"]
        self.tell(ZERO if is_hover else Told(-state["pitch"], -state["roll"], state["gas"], -state["yaw"]))

    def roots(self):
        return (self.program,)
