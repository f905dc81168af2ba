# SPDX-License-Identifier: Apache-2.0
"""web_bridge as a process, with viewers and pilots other than browsers."""

import contextlib
import itertools
import json
import socket
import struct
import threading
import time
from urllib.parse import urlsplit

import pytest
from processes import TIMEOUT_S, Process
from web_page import address_of

pytest.importorskip("foxglove", reason="web_bridge needs foxglove-sdk, for which rosdep has no key")
connect = pytest.importorskip("websockets.sync.client", reason="Ubuntu's websockets may be older").connect

FOXGLOVE = "foxglove.sdk.v1"
HELM = "drone_bridge.helm.v1"
MESSAGE_DATA, SERVICE_CALL, SERVICE_RESPONSE = 1, 2, 3


@contextlib.contextmanager
def web_bridge(**parameters):
    """Start web_bridge on a free port. Yield its process with the printed `address`."""
    with Process.node("web_bridge", **{"port": 0, **parameters}) as process:
        process.address = address_of(process)
        yield process


class Client:
    """Client of web_bridge with a protocol of its connection."""

    def __init__(self, address, protocol, **options):
        self._open = contextlib.ExitStack()
        opening = connect(f"ws://{address}", subprotocols=[protocol], proxy=None, close_timeout=1, **options)
        self.connection = self._open.enter_context(opening)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._open.close()

    def wait_for(self, condition, what, timeout_s=TIMEOUT_S):
        """Receive until the condition is met, and return its result."""
        deadline_s = time.monotonic() + timeout_s
        while not (met := condition()):
            left_s = deadline_s - time.monotonic()
            assert left_s > 0, f"waited {timeout_s} s for {what}"
            self.receive(left_s)
        return met


class Viewer(Client):
    """Viewer with Foxglove's protocol."""

    def __init__(self, address, **options):
        super().__init__(address, FOXGLOVE, max_size=None, **options)
        self.channels, self.services, self.gone, self.info = {}, {}, [], None
        self._numbers, self._subscriptions = itertools.count(1), {}
        self.messages, self.answers, self.failures, self.statuses = [], {}, {}, []

    def receive(self, timeout_s):
        """Receive one frame. Return False on a timeout."""
        try:
            frame = self.connection.recv(timeout_s)
        except TimeoutError:
            return False
        if isinstance(frame, bytes):
            self._take(frame)
            return True
        text = json.loads(frame)
        match text["op"]:
            case "serverInfo":
                self.info = text
            case "advertise":
                self.channels.update((channel["topic"], channel) for channel in text["channels"])
            case "unadvertise":
                for number in text["channelIds"]:
                    topic = next(name for name, channel in self.channels.items() if channel["id"] == number)
                    self.gone.append(topic)
                    del self.channels[topic]
            case "advertiseServices":
                self.services.update((service["name"], service) for service in text["services"])
            case "status":
                self.statuses.append(text["message"])
            case "serviceCallFailure":
                self.failures[text["callId"]] = text["message"]
        return True

    def _take(self, frame):
        if frame[0] == MESSAGE_DATA:
            number, _ = struct.unpack_from("<IQ", frame, 1)
            self.messages.append((self._subscriptions[number], frame[13:]))
        elif frame[0] == SERVICE_RESPONSE:
            _, call, length = struct.unpack_from("<III", frame, 1)
            self.answers[call] = frame[13 + length :]

    def subscribe(self, topic):
        channel = self.wait_for(lambda: self.channels.get(topic), f"the channel of {topic}")
        number = next(self._numbers)
        self._subscriptions[number] = topic
        subscription = {"id": number, "channelId": channel["id"]}
        self.connection.send(json.dumps({"op": "subscribe", "subscriptions": [subscription]}))
        return number

    def unsubscribe(self, number):
        self.connection.send(json.dumps({"op": "unsubscribe", "subscriptionIds": [number]}))

    def payloads(self, topic):
        return [data for name, data in self.messages if name == topic]

    def next_of(self, topic, wanted=lambda data: True):
        """Wait for the first wanted message of a topic. Drop it and earlier ones."""

        def find():
            for index, (name, data) in enumerate(self.messages):
                if name == topic and wanted(data):
                    before = [each for each in self.messages[:index] if each[0] != topic]
                    self.messages[: index + 1] = before
                    return data
            return None

        return self.wait_for(find, f"a message on {topic}")

    def call(self, name, request):
        """Return the serialized response, or the sentence of an error."""
        service = self.wait_for(lambda: self.services.get(name), f"the service {name}")
        number = next(self._numbers)
        header = struct.pack("<BIII", SERVICE_CALL, service["id"], number, 3)
        self.connection.send(header + b"cdr" + request)
        return self.wait_for(lambda: self.answers.get(number) or self.failures.get(number), f"an answer of {name}")


class Pilot(Client):
    """Pilot."""

    def __init__(self, address, **options):
        super().__init__(address, HELM, **options)
        self.token = self.may_steer = self.acknowledged = None
        self.vehicles, self.refusals = {}, []

    def receive(self, timeout_s=TIMEOUT_S):
        text = json.loads(self.connection.recv(timeout_s))
        match text["op"]:
            case "token":
                self.token = text["token"]
            case "vehicles":
                self.may_steer = text["may_steer"]
                self.vehicles = {vehicle["topic"]: vehicle for vehicle in text["vehicles"]}
            case "stopped":
                self.acknowledged = text["number"]
            case "refused":
                self.refusals.append(text["reason"])
        return text["op"]

    def send(self, **request):
        self.connection.send(json.dumps(request))

    def take(self, topic):
        """Take the helm of a vehicle, which must be free."""
        self.wait_for(lambda: topic in self.vehicles, f"the vehicle {topic}")
        self.send(op="take", vehicle=topic)
        self.wait_for(lambda: self.vehicles[topic]["pilot"] == "you", f"the helm of {topic}")

    def next_token(self):
        """Return a new token."""
        while self.receive() != "token":
            pass
        return self.token

    def steer(self, token=None, **motion):
        self.send(op="steer", token=self.next_token() if token is None else token, motion=motion)

    def push(self, **motion):
        """Steer. After a stall of this machine, release the stick first, as a pilot must."""
        if self.refusals:
            self.refusals.clear()
            self.steer()
        self.steer(**motion)


class Network:
    """Connection that can lose all data in both directions, unnoticed by both ends.

    With `forwarded_for`, it is a proxy that reports a viewer on another machine in each request.
    """

    def __init__(self, address, forwarded_for=None):
        self._target = urlsplit(f"//{address}")
        self._added = f"X-Forwarded-For: {forwarded_for}\r\n".encode() if forwarded_for else b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}/?{self._target.query}"
        self.works = threading.Event()
        self.works.set()
        self._sockets = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection((self._target.hostname, self._target.port))
            self._sockets += [near, far]
            for source, sink, added in ((near, far, self._added), (far, near, b"")):
                threading.Thread(target=self._pass_on, args=(source, sink, added), daemon=True).start()

    def _pass_on(self, source, sink, added):
        try:
            while data := source.recv(65536):
                self.works.wait()
                sink.sendall(data.replace(b"\r\n", b"\r\n" + added, 1) if added else data)
                added = b""
        except OSError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.works.set()
        for each in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)  # or a thread that reads keeps it open
            each.close()
