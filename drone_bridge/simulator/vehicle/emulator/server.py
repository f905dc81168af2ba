# SPDX-License-Identifier: Apache-2.0
"""Server: serves clients over TCP, and steps the simulation."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket

from drone_bridge.programs.program import TrajectoryFile, print_event
from drone_bridge.simulator.codec import VEHICLE, Completed, Error, Request, Response, Run
from drone_bridge.simulator.vehicle.device.requests import Context, Quirks, ServedClient, answer
from drone_bridge.simulator.vehicle.emulator.scene import SimulatedScene
from drone_bridge.wire.addresses import address_name
from drone_bridge.wire.events import DisconnectPeerError, RemoteProtocolError


class SocketClient(ServedClient):
    """A connected client."""

    def __init__(self, peer: str, writer: asyncio.StreamWriter, quirks: Quirks) -> None:
        super().__init__(print_event, quirks)
        self.peer = peer
        self._writer = writer
        self._has_ended = False
        connected = writer.get_extra_info("socket")
        # The CUAUV server keeps Nagle's algorithm, so that its bodies wait for the client's acknowledgement.
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, not self.is_real)

    def __str__(self) -> str:
        return self.peer

    @property
    def is_lost(self) -> bool:
        """Whether writing has failed because the client has disconnected."""
        return self._writer.transport.is_closing()

    @property
    def unread_bytes(self) -> int:
        """Number of bytes queued for the client."""
        return self._writer.transport.get_write_buffer_size() + super().unread_bytes

    # Sending.

    def queue(self, message: bytes) -> None:
        """See ServedClient."""
        if self._has_ended:
            return
        was_given_up = self.drop_reason
        super().queue(message)
        if self.drop_reason and not was_given_up:
            self._writer.transport.abort()

    def flush(self) -> None:
        pieces = self.take()
        if self._writer.is_closing():
            return
        for piece in pieces:
            self._writer.write(piece)

    def send_goodbye(self) -> None:
        """Write all data and shut down the sending side."""
        self.flush()
        self._has_ended = True
        if not self._writer.is_closing():
            with contextlib.suppress(OSError):  # the client may have just disconnected
                self._writer.write_eof()

    def close(self) -> None:
        """Write all data and close without waiting for the client."""
        self.flush()
        self._writer.close()


# All clients, and the time.


GOODBYE_S = 0.2  # time for clients to close when the server ends
LATE_S = 0.1  # delay in noticing that a client has closed
MAX_LAG_S = 0.1  # maximum lag that is caught up after a stall
COLUMNS = ("time", "x", "y", "z", "qw", "qx", "qy", "qz", "vx", "vy", "vz", "wx", "wy", "wz")
_RECEIVE_BYTES = 64 * 1024
_REQUESTS_PER_TURN = 32  # of one client, before the world and other clients get their turn


class Server:
    """Server of all clients, and clock of the simulation."""

    def __init__(
        self,
        context: Context,
        scene: SimulatedScene,
        trajectory: TrajectoryFile | None = None,
        *,
        is_fragile: bool = False,
    ) -> None:
        """`is_fragile`: notice late that a client has closed, and die of SIGPIPE on a write to a closed connection."""
        self._context = context
        self._scene = scene
        self._trajectory = trajectory
        self._is_fragile = is_fragile
        if is_fragile:
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # ignored by Python, but not by the CUAUV server
        self._connections: dict[SocketClient, asyncio.Task[None]] = {}
        self._is_leaving = False
        self._resumed = asyncio.Event()
        context.control.on_run = self._resumed.set

    # Clients.

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client until either side ends the connection."""
        peer = address_name(*writer.get_extra_info("peername")[:2])
        task = asyncio.current_task()
        assert task
        if self._is_leaving:
            writer.close()
            return
        connection = SocketClient(peer, writer, Quirks.REAL if self._context.is_real else Quirks.NONE)
        self._connections[connection] = task
        print_event(f"connected to {peer}")
        with contextlib.suppress(asyncio.CancelledError):  # by disconnect_all
            await self._converse(reader, connection)

    async def _converse(self, reader: asyncio.StreamReader, connection: SocketClient) -> None:
        reason = "connection closed by the client"
        try:
            while data := await reader.read(_RECEIVE_BYTES):
                if not self._is_leaving:
                    connection.protocol.receive_data(data)
                    await self._handle(connection)
            if not self._is_leaving:
                connection.protocol.receive_eof()
                await self._handle(connection)
                await self._stream_into_closed(connection)
        except (RemoteProtocolError, DisconnectPeerError) as error:
            reason = str(error)
        except asyncio.CancelledError:
            reason = "simulator shut down"
            raise
        except OSError as error:
            reason = f"connection lost: {error.strerror or error}"
            await self._stream_into_closed(connection)
        finally:
            connection.close()
            del self._connections[connection]
            self._context.world.leave(connection)
            print_event(f"{connection} disconnected: {connection.drop_reason or reason}")

    async def _stream_into_closed(self, connection: SocketClient) -> None:
        """Keep streaming to a client that has closed, like the CUAUV server until SIGPIPE kills it."""
        if self._is_fragile and self._context.world.items.of_client(connection):
            await asyncio.sleep(LATE_S)
            if connection.is_lost:
                print_event(f"killed by SIGPIPE: {connection} has closed its connection during streaming")
                signal.raise_signal(signal.SIGPIPE)

    async def _handle(self, connection: SocketClient) -> None:
        """Answer all received requests, in turn with other clients."""
        handled = 0
        while not connection.drop_reason and (request := connection.next_request()) is not None:
            connection.answer(self._answer(connection, request))
            handled += 1
            if handled % _REQUESTS_PER_TURN == 0:
                self._flush()
                await asyncio.sleep(0)
        self._flush()

    def _answer(self, connection: SocketClient, request: Request) -> Response:
        response = answer(self._context, connection, request)
        if connection.is_real and isinstance(request, Run) and not isinstance(response, Error):
            self._step()  # the CUAUV server's first step may overtake its answer
        return response

    def _flush(self) -> None:
        for connection in self._connections:
            connection.flush()

    async def disconnect_all(self) -> None:
        self._is_leaving = True
        self._complete()
        for connection in self._connections:
            connection.send_goodbye()
        tasks = tuple(self._connections.values())
        if tasks:
            await asyncio.wait(tasks, timeout=GOODBYE_S)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Time.

    async def keep_time(self) -> None:
        """Step while the world runs."""
        control, timing = self._context.control, self._context.timing
        loop = asyncio.get_running_loop()
        while True:
            if not control.is_running:
                self._resumed.clear()
                await self._resumed.wait()
            due = loop.time()
            while control.is_running:
                now = loop.time()
                due = max(due, now - MAX_LAG_S)
                while control.is_running and due <= now and loop.time() - now < MAX_LAG_S:
                    self._step()
                    due += 1 / timing.frequency
                await asyncio.sleep(max(0.0, due - loop.time()))

    def _step(self) -> None:
        is_last = self._context.control.count_step()
        if is_last and self._context.is_real:
            self._complete()  # in the CUAUV server, it overtakes the streams of the last step
        self._scene.step()
        self._context.world.notify_step()
        if is_last and not self._context.is_real:
            self._complete()
        self._flush()
        self.record()

    def _complete(self) -> None:
        for connection in self._connections:
            connection.post(Completed())

    def record(self) -> None:
        """Write the vehicle's state to the trajectory, if both exist."""
        vehicle = self._scene.entities.get(VEHICLE)
        if self._trajectory and vehicle:
            self._trajectory.write((self._scene.time, *vehicle.x, *vehicle.q, *vehicle.v, *vehicle.w))
