# SPDX-License-Identifier: Apache-2.0
"""Robot for tests, which control all packets except the standard answers."""

import contextlib
import socket
import threading

from inbox import Inbox

from drone_bridge.robot import codec

DRIVE, LAMP = 0, 1
SUBSYSTEMS = codec.SubsystemInfo(
    (
        codec.Subsystem(1, "drive", "", codec.MotorSensors(0, 1, 2, 3), codec.MotorSensors(0, 1, 2, 3)),
        codec.Subsystem(2, "lamp"),
    )
)
SENSORS = codec.SensorInfo(
    (
        codec.Sensor(1, "pack", value=9_000, full_voltage_mv=12_000),
        codec.Sensor(2, "Left Motor", value=2550),
        codec.Sensor(3, "Left Motor", value=1500),
        codec.Sensor(4, "Left Motor", value=-1024),
    )
)
FIRMWARE = codec.FirmwareInfo("scripted", "0.1", 2)


class RobotPeer:
    """Server on a free port, which serves one driver at a time in a thread."""

    def __init__(self, sensors=SENSORS, subsystems=SUBSYSTEMS):
        self.sensors, self.subsystems = sensors, subsystems
        self.received = Inbox()
        self.packets = []  # of the newest connection
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._socket = None
        self._sending = threading.Lock()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                connected, _ = self._listener.accept()
                with connected:
                    self._socket, self.packets = connected, []
                    self._connection = codec.RobotConnection([s.type for s in self.subsystems.subsystems])
                    self._read(connected)

    def _read(self, connected):
        connection = self._connection
        with contextlib.suppress(OSError):
            while data := connected.recv(65536):
                connection.receive_data(data)
                while (packet := connection.next_event()) is not codec.NEED_DATA:
                    self._answer(packet)
                    self.packets.append(packet)
                    self.received.put(packet)
        self.packets.append(codec.ConnectionClosed())
        self.received.put(self.packets[-1])

    def _answer(self, packet):
        if isinstance(packet, codec.KeepAlive):
            self.send(packet)
        elif isinstance(packet, codec.QuerySubsystems):
            self.send(self.sensors, self.subsystems, FIRMWARE)
        elif isinstance(packet, codec.BindSubsystem):
            self.send(codec.SubsystemBound(packet.id, "tester"), codec.BindSuccess(packet.id))

    def send(self, *packets):
        with self._sending, contextlib.suppress(OSError):
            self._socket.sendall(b"".join(map(self._connection.send, packets)))

    def wait_for(self, kind, wanted=lambda packet: True):
        """Return the next packet of a wanted kind. Earlier ones are dropped."""
        return self.received.wait(lambda packet: isinstance(packet, kind) and wanted(packet))

    def wait_for_speeds(self, left, right):
        self.wait_for(codec.SkidSteerUpdate, lambda update: (update.left, update.right) == (left, right))

    def close(self):
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        if self._socket:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
