# SPDX-License-Identifier: Apache-2.0
"""RecordingView: shows a bag in the page and in Foxglove: its topics as channels, with playback. Without ROS.

Play, pause, speed and seek use Foxglove's playback control. The server's messages to viewers share the path of topic
messages, so that no earlier message arrives after a jump.

The main thread plays, Foxglove's threads pause and seek, one thread sends the state twice per second, and the front
door's threads serve the history: it is read once, under a lock, with a separate reader.
"""

import contextlib
import functools
import re
import struct
import sys
import threading
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import foxglove
from ament_index_python.packages import get_package_share_directory
from foxglove import Channel, Schema
from foxglove.websocket import PlaybackCommand, PlaybackControlRequest, PlaybackState, PlaybackStatus, ServerListener
from rclpy.serialization import serialize_message
from std_msgs.msg import String

from drone_bridge.kind import kinds
from drone_bridge.net.connector import LinkError
from drone_bridge.ros.topics.urdf import put_before_frames
from drone_bridge.stop_signals import handle_stop_signals
from drone_bridge.tools.bags.bag import NANOSECONDS_PER_SECOND, BagReader, BagReadError, BagTopic
from drone_bridge.tools.bags.events import Event, events
from drone_bridge.tools.play.player import Player, Span
from drone_bridge.tools.play.publishers import is_latched
from drone_bridge.tools.shared.interfaces import BULKY_TYPES, ENCODING, UnknownTypeError, message_text
from drone_bridge.tools.web.access import Access
from drone_bridge.tools.web.address import hidden_host, links, open_in_browser, qr_code
from drone_bridge.tools.web.gateway import Gateway
from drone_bridge.tools.web.pilots import Pilots
from drone_bridge.tools.web.relay import Relay

MODEL_TYPE = "std_msgs/msg/String"
#: Suffix of a bridge's topics.
_BRIDGE_TOPIC = re.compile(r"(.*/)([a-z0-9]+)_(?:bridge|server)/\w+")
STATE_PERIOD_S = 0.5
FIRST_VIEWER_PERIOD_S = 0.1
#: Playback begins without a subscription after this time with a viewer.
SUBSCRIPTION_TIMEOUT_S = 3.0
MIN_SPEED, MAX_SPEED = 0.01, 100.0
#: Length of the period before a jump's target whose last messages are shown.
LOOK_BACK_NS = NANOSECONDS_PER_SECOND
#: History of each topic for plots of a whole recording: the last message in each interval, except large ones.
HISTORY_PARTS = 1000
HISTORY_BYTES = 2**14
PLAYING, PAUSED, ENDED = 0, 1, 3
_STATE = struct.Struct("<BBQfBI")  # Foxglove's protocol: playback state, with an empty request id
_STATE_OPCODE = 5


class _Feed:
    """Topic with its last messages for later viewers."""

    def __init__(self, view: "RecordingView", channel: Channel) -> None:
        self._view = view
        self.channel = channel
        self.last: bytes | None = None

    def publish(self, data: bytes) -> None:
        self.last = data
        self._view.relay.publish(self.channel.id(), None, data, self._view.player.position_ns)


class RecordingView(ServerListener):
    """Serves one bag."""

    _has_subscribers = False

    def __init__(self, bag: BagReader, access: Access, port: int) -> None:
        """Listen. Raises LinkError."""
        self._bag = bag
        self._context = context = foxglove.Context()  # the server itself does not keep a reference
        foxglove.set_log_level("ERROR")
        host = hidden_host()
        self._server = foxglove.start_server(
            name=f"/{bag.path.name}",
            host=host,
            port=0,
            server_listener=self,
            context=context,
            playback_time_range=(bag.start_ns, bag.end_ns),
        )
        self.relay = Relay(host, self._server.port, self._on_subscribed)
        self._feeds: dict[BagTopic, Any] = {}
        for topic in bag.topics:
            if schema := _schema(bag, topic):
                channel = Channel(topic.name, schema=schema, message_encoding="cdr", context=context)
                self._feeds[topic] = _Feed(self, channel)
        self._models: list[_Feed] = []
        for name, description in _models(bag):
            schema = Schema(name=MODEL_TYPE, encoding="ros2msg", data=b"string data")
            feed = _Feed(self, Channel(name, schema=schema, message_encoding="cdr", context=context))
            feed.last = serialize_message(String(data=description))
            self._models.append(feed)
        self._by_channel: dict[int, _Feed] = {
            feed.channel.id(): feed for feed in (*self._feeds.values(), *self._models)
        }
        latched = [topic for topic in self._feeds if is_latched(topic)]
        span = Span(bag.start_ns, bag.end_ns)
        self.player = Player(bag, self._feeds, latched, span, rate=1.0, on_jump=self._on_jump)
        self._events: list[Event] | None = None
        self._history: dict[str, dict[int, tuple[int, bytes]]] | None = None
        self._reading = threading.Lock()
        self._door = Gateway(access, port, self.relay, Pilots())
        self._door.farewell = "This recording is not played any more."
        self._door.offer("events.json", self._events_document)
        for topic in self._feeds:
            self._door.offer(f"history{topic.name}.json", functools.partial(self._history_document, topic.name))
        try:
            self.port, self.taken = self._door.open(), self._door.taken
        except LinkError:
            self._server.stop()
            raise
        self._is_stopped = threading.Event()
        self._ticker = threading.Thread(target=self._send_state_periodically, daemon=True)
        self._ticker.start()

    def close(self) -> None:
        """Disconnect all viewers."""
        self._is_stopped.set()
        self._door.close()
        self._server.stop()

    def on_playback_control_request(self, playback_control_request: PlaybackControlRequest) -> PlaybackState:
        request = playback_control_request
        speed = min(max(MIN_SPEED, request.playback_speed), MAX_SPEED)  # in this order, NaN becomes the minimum
        is_paused = request.playback_command == PlaybackCommand.Pause
        self.player.control(is_paused=is_paused, rate=speed, position_ns=request.seek_time)
        self._send_state()
        status = PlaybackStatus.Paused if is_paused else PlaybackStatus.Playing
        # A jump is reported when it is complete.
        return PlaybackState(status, self.player.position_ns, speed, did_seek=False, request_id=request.request_id)

    def _send_state_periodically(self) -> None:
        while not self._is_stopped.wait(STATE_PERIOD_S):
            self._send_state()

    def _send_state(self, *, did_seek: bool = False) -> None:
        position_ns, is_paused = self.player.position_ns, self.player.is_paused
        status = ENDED if position_ns >= self._bag.end_ns else PAUSED if is_paused else PLAYING
        self.relay.send_all(_STATE.pack(_STATE_OPCODE, status, position_ns, self.player.rate, did_seek, 0))

    def _on_jump(self, position_ns: int) -> None:
        """Show the target of a jump: the last message of each topic. On the thread that plays."""
        for feed in self._feeds.values():
            feed.last = None
        self._send_state(did_seek=True)
        latest: dict[BagTopic, bytes] = {}
        for message in self._bag.messages(self._feeds.keys(), position_ns - LOOK_BACK_NS, position_ns):
            latest[message.topic] = message.data
        for topic, data in latest.items():
            self._feeds[topic].publish(data)

    def _on_subscribed(self, viewer: int, channel: int, is_subscribed: bool) -> None:
        feed = self._by_channel.get(channel)
        if is_subscribed and feed is None:
            self.relay.refuse(viewer, channel)
        elif is_subscribed and feed is not None:
            self._has_subscribers = True
            if feed.last is not None:
                self.relay.publish(channel, viewer, feed.last, self.player.position_ns)

    def _events_document(self) -> Any:
        with self._reading:
            if self._events is None:
                self._events = []
                with contextlib.suppress(BagReadError), BagReader(self._bag.path) as bag:  # the player uses another one
                    self._events = events(bag)
        return {**self._span(), "events": [{**asdict(event), "time_ns": str(event.time_ns)} for event in self._events]}

    def _history_document(self, topic: str) -> Any:
        """Return the thinned history of a topic. The whole bag is read once."""
        with self._reading:
            if self._history is None:
                self._history = self._read_history()
        parts = self._history.get(topic, {})
        return {
            **self._span(),
            "messages": [(str(time_ns), b64encode(data).decode()) for time_ns, data in parts.values()],
        }

    def _read_history(self) -> dict[str, dict[int, tuple[int, bytes]]]:
        found: dict[str, dict[int, tuple[int, bytes]]] = {}
        part_ns = (self._bag.end_ns - self._bag.start_ns) // HISTORY_PARTS + 1
        with contextlib.suppress(BagReadError), BagReader(self._bag.path) as bag:  # the player uses another one
            for message in bag.messages([topic for topic in self._feeds if topic.type_name not in BULKY_TYPES]):
                if len(message.data) <= HISTORY_BYTES:
                    part = (message.time_ns - self._bag.start_ns) // part_ns
                    found.setdefault(message.topic.name, {})[part] = (message.time_ns, message.data)
        return found

    def _span(self) -> dict[str, str]:
        return {"start_ns": str(self._bag.start_ns), "end_ns": str(self._bag.end_ns)}

    def play(self) -> None:
        """Play on request, from the first viewer's subscription on, until stopped. Raises BagReadError."""
        left_s = SUBSCRIPTION_TIMEOUT_S
        while not self._has_subscribers and left_s > 0:
            if not self.player.wait(FIRST_VIEWER_PERIOD_S):
                return
            left_s -= FIRST_VIEWER_PERIOD_S * self.relay.has_viewers
        self.player.play_on_request()


def _models(bag: BagReader) -> Iterator[tuple[str, str]]:
    """Yield missing models of vehicles with recorded bridges: topic and description."""
    names = {topic.name for topic in bag.topics}
    bridges = {match[1]: match[2] for name in names if (match := _BRIDGE_TOPIC.fullmatch(name))}
    for namespace, bridge in bridges.items():
        kind = kinds().get(bridge)
        if f"{namespace}robot_description" in names or kind is None:
            continue
        file = Path(get_package_share_directory("drone_bridge"), "urdf", f"{kind.model}.urdf")
        description = ElementTree.parse(file).getroot()
        put_before_frames(description, namespace.lstrip("/"))
        yield f"{namespace}robot_description", ElementTree.tostring(description, encoding="unicode")


def _schema(bag: BagReader, topic: BagTopic) -> Schema | None:
    """Return the definition of a topic's type: the bag's, else the installed one, else None."""
    text, encoding = bag.definition(topic)
    if not text:
        try:
            text, encoding = message_text(topic.type_name), ENCODING
        except UnknownTypeError as error:
            print(f"Skipped '{topic.name}': {error}", flush=True)
            return None
    return Schema(name=topic.type_name, encoding=encoding, data=text.encode())


def serve(bag: BagReader, host: str, port: int, *, opens_browser: bool) -> int:
    """Serve a bag until a stop signal. Returns the exit status. Raises BagReadError."""
    if not bag.count:
        print(f"drone-bridge view: '{bag.path}' has nothing to show.", file=sys.stderr)
        return 1
    access = Access.of(host, steer=False)
    try:
        view = RecordingView(bag, access, port)
    except LinkError as error:
        print(f"drone-bridge view: {error}", file=sys.stderr)
        return 1
    handle_stop_signals(view.player.stop)
    addresses = links(access, view.port)
    if taken := view.taken:
        taken.argument = "--port"
        print(f"{taken} This page is on port {view.port}.", flush=True)
    for address in addresses:
        print(f"Open in a browser: {address}", flush=True)
    if access.secret:
        print(qr_code(addresses[0]), flush=True)
    if opens_browser:
        open_in_browser(addresses[0])
    try:
        view.play()
    finally:
        view.close()
    return 0
