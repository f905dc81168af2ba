# SPDX-License-Identifier: Apache-2.0
"""A simulator for tests, which decide on every message but the answers that all simulators give."""

import contextlib
import socket
import threading

from inbox import Inbox
from patience import wait_until

from drone_bridge.motion.wxyz import multiply
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute, ItemType
from drone_bridge.wire.events import RemoteProtocolError

UPRIGHT = (1.0, 0.0, 0.0, 0.0)
STILL = {
    Attribute.POSITION: (0.0, 0.0, 0.0),
    Attribute.VELOCITY: (0.0, 0.0, 0.0),
    Attribute.ACCELERATION: (0.0, 0.0, 0.0),
    Attribute.ORIENTATION: UPRIGHT,
    Attribute.ANGULAR_VELOCITY: (0.0, 0.0, 0.0),
    Attribute.CORPOREAL: True,
}
SILENCE = object()
STREAMED = (0, 1, 2, 3, 4)


def whole(data):
    """Send it as it is."""
    return [data]


def as_the_real_one(data):
    """Header and body apart. Only for single messages."""
    return [data[:5], data[5:]]


def byte_by_byte(data):
    return [bytes([byte]) for byte in data]


class _Client:
    def __init__(self, connected):
        self.socket = connected
        self.connection = sim.ServerConnection(max_body_bytes=sim.MAX_REQUEST_BYTES)
        self.requests = []
        self.sending = threading.Lock()
        self.is_silent = False

    def asked_for(self, kind):
        return [request for request in self.requests if isinstance(request, kind)]


class World:
    """What is simulated, and the answers that all simulators give."""

    def begin_anew(self, **behaviour):
        """Begin a new world, in which everything is as it was at first."""
        self.entities = {0: dict(STILL)}
        self.extended = {}
        self.btom = UPRIGHT  # of entity 0
        self.answers = {}
        self.closes_on = {sim.Spy}
        self.split = as_the_real_one
        self.is_cuauv_server = True  # which says OK to REMOVE of a trigger that is not there
        self.fragments = 0  # requests that came in pieces
        self.parting = lambda client: None  # what is done with a connection that a client has ended
        self._counts = dict.fromkeys(ItemType, 0)
        vars(self).update(behaviour)
        self._counts[ItemType.ENTITY] = max(self.entities) + 1

    def usual_answer(self, request):
        if isinstance(request, sim.GetConfig):
            return sim.Configured(100.0, 1.0, False, False)
        if isinstance(request, sim.ListEntities):
            return sim.EntitiesListed(tuple(self.entities))
        if isinstance(request, sim.GetEntity):
            entity = self.entities.get(request.id)
            if entity is None:
                return sim.Error(0, "No entity with given ID.")
            return sim.EntityGot(request.attribute, entity[request.attribute])
        if isinstance(request, sim.SetEntity) and request.attribute == Attribute.ORIENTATION:
            btom = self.btom if request.id == 0 else UPRIGHT
            self.entities[request.id][Attribute.ORIENTATION] = multiply(request.value, btom)
        if isinstance(request, sim.StreamEntity) and request.id not in self.entities:
            return sim.Error(1, "No entity with given ID.")
        if isinstance(request, sim.SetExtended):
            self.extended[request.id, request.key] = request.data
            return sim.Ok()
        if isinstance(request, sim.GetExtended):
            data = self.extended.get((request.id, request.key))
            missing = sim.Error(0, "No extended entity attribute with given key.")
            return missing if data is None else sim.ExtendedGot(request.key, data)
        if isinstance(request, sim.Remove) and request.type == ItemType.TRIGGER and not self.is_cuauv_server:
            return sim.Error(0, "No trigger with given ID.")
        if request.ADDS is not None:
            number = self._counts[request.ADDS]
            self._counts[request.ADDS] += 1
            if isinstance(request, sim.AddEntity):
                self.entities[number] = dict(STILL)
            return sim.Added(request.ADDS, number)
        return sim.Ok() if request.ANSWER is sim.Ok else sim.Error(9, "The test gave no answer.")


class SimulatorPeer(World):
    """Listens on a free port, and serves any number of clients, each in a thread. Closes on SPY, as the real one does.

    `answers`: by type of request, a response or a function of the request, which may give None if it has answered
    itself; or SILENCE, with which answers on that connection end.
    """

    def __init__(self, port=0, **behaviour):
        self.clients = []
        self.received = Inbox()  # pairs of client and request
        self._world = threading.Lock()  # while a request changes it, or a new one begins
        self.begin_anew(**behaviour)
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    # Serving.

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connected, _ = self._listener.accept()
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                client = _Client(connected)
                self.clients.append(client)
                self._threads.append(threading.Thread(target=self._serve, args=[client]))
                self._threads[-1].start()

    def _serve(self, client):
        try:
            self._read(client)
        finally:
            self.clients.remove(client)

    def _read(self, client):
        with client.socket, contextlib.suppress(OSError, RemoteProtocolError):
            while data := client.socket.recv(65536):
                client.connection.receive_data(data)
                while (request := client.connection.next_event()) is not sim.NEED_DATA:
                    client.requests.append(request)
                    if type(request) in self.closes_on:
                        client.socket.shutdown(socket.SHUT_RDWR)
                        break
                    self._answer(client, request)
                    self.received.put((client, request))
                self.fragments += client.connection.inside_message
            self.parting(client)

    def _answer(self, client, request):
        with self._world:
            answer = self.answers.get(type(request), self.usual_answer)
            client.is_silent |= answer is SILENCE
            if client.is_silent:
                return
            if answer == self.usual_answer:
                answer = self.usual_answer(request)
        if callable(answer):
            answer = answer(request)
        if answer is not None:
            self.send(client, answer)

    # What a test does.

    def send(self, client, *messages):
        """Send messages on a connection."""
        for message in messages:
            self.send_bytes(client, client.connection.send(message))

    def send_bytes(self, client, data):
        with client.sending, contextlib.suppress(OSError):
            for piece in self.split(data):
                client.socket.sendall(piece)

    def wait_for(self, kind, wanted=lambda request: True):
        """Return the next request of a kind that is wanted; what came before is forgotten."""
        return self.received.wait(lambda pair: isinstance(pair[1], kind) and wanted(pair[1]))[1]

    def wait_until_settled(self):
        """Wait for a bridge that has asked for all it wants, and return its connections, for requests and streams.

        What it has asked last on the one for requests may still be on its way through this peer's threads.
        """

        def find():
            clients = list(self.clients)  # the one that tries SPY may be leaving
            found = [client for client in clients if client.asked_for(sim.GetConfig)]
            found += [client for client in clients if client.asked_for(sim.StreamEntity)]
            return found if len(found) == 2 and found[1].asked_for(sim.Reassure) else None

        return wait_until(find, "a bridge that has asked for all it wants")

    def step(self, streams, values=None, stream=0):
        """Tell the state of an entity after a step."""
        state = STILL | (values or {})
        data = tuple(state[attribute] for attribute in STREAMED)
        self.send(streams, sim.EntityData(stream, STREAMED, data))

    def requests(self, kind):
        """Return the requests of a kind on all open connections."""
        return [request for client in list(self.clients) for request in client.asked_for(kind)]

    def hang_up(self):
        """Close all connections."""
        clients = list(self.clients)
        for client in clients:
            with contextlib.suppress(OSError):
                client.socket.shutdown(socket.SHUT_RDWR)
        wait_until(lambda: not any(client in self.clients for client in clients), "the end of the connections")

    def restart(self, **behaviour):
        """Close all connections and begin a new world; return the connections of the bridge that comes back."""
        # First the new world, as the bridge may be back at once.
        with self._world:
            for client in list(self.clients):
                client.is_silent = True  # what it still asks is for the world that has gone
            self.begin_anew(**behaviour)
        self.hang_up()
        self.received.clear()
        return self.wait_until_settled()

    def close(self):
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join()
        self.hang_up()
        for thread in self._threads:
            thread.join()
