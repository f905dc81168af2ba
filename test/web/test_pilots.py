# SPDX-License-Identifier: Apache-2.0
"""Connections of pages with the server: requests, refusals, limits and rates. No socket, no ROS, and a fake clock."""

import asyncio
import functools
import json
from collections import defaultdict
from types import SimpleNamespace

import pytest

pytest.importorskip("websockets.asyncio.server", reason="Ubuntu's websockets may be older")

from websockets.exceptions import ConnectionClosedOK

from drone_bridge.tools.web import pilots
from drone_bridge.tools.web.helm import NEUTRAL
from drone_bridge.tools.web.vehicles import SteeredVehicle

TOPIC = "/dronegui/cmd_vel_stamped"
DRONE = SteeredVehicle(TOPIC, "dronegui_bridge", holds=("/dronegui/dronegui_bridge/hold",))


class Page:
    """Page on a connection that reads immediately."""

    def __init__(self):
        self.got = defaultdict(list)  # what it was sent, by kind
        self.unread = 0
        self.transport = SimpleNamespace(get_write_buffer_size=lambda: self.unread, abort=lambda: None)
        self.requests, self.reads = asyncio.Queue(), asyncio.Event()
        self.reads.set()

    async def close(self, code, reason):
        self.got["refused"].append(reason)

    async def send(self, text):
        await self.reads.wait()
        kind, *content = (message := json.loads(text)).values()
        self.got[kind].append(message if kind == "vehicles" else content[0])

    async def recv_streaming(self):
        request = await self.requests.get()
        if not request:
            raise ConnectionClosedOK(None, None)
        yield request

    @property
    def told(self):
        return self.got["vehicles"][-1]

    @property
    def drone(self):
        return self.told["vehicles"][0]


class Server:
    """Conversation with pages, and its requests to vehicles."""

    def __init__(self):
        self.loop, self.tasks = asyncio.new_event_loop(), []
        self.done, self.shown, self.goals, self.faults, self.sleeps = [], [], [], [], []
        self.writer = SimpleNamespace(problem="", keep=lambda _: None, wait=lambda _: self.is_written)
        self.is_written, self.is_broken = True, False
        self.pilots = pilots.Pilots(
            send_command=self._command,
            ask_to_hold=lambda topic, is_held, answer: self.done.append("hold" if is_held else "resume"),
            set_goal=lambda topic, place: self.goals.append(topic),
            show=self.shown.append,
            on_fault=self.faults.append,
            writer=self.writer,
        )
        self.see(DRONE)
        self.page = self.open()

    def _command(self, topic, motion, stamp):
        if self.is_broken:
            raise ZeroDivisionError
        self.done.append("neutral" if motion == NEUTRAL else motion)

    def run(self, work):
        self.tasks.append(self.loop.create_task(work))
        self.settle()
        return self.tasks[-1]

    def settle(self):
        """Deliver all pending messages."""
        for _ in range(20):
            self.loop.run_until_complete(asyncio.sleep(0))

    def open(self, *, may_steer=True):
        page = Page()
        self.run(self.pilots(page, may_steer))
        return page

    def leave(self, page):
        page.requests.put_nowait("")
        self.settle()

    def ask(self, page=None, **request):
        (page or self.page).requests.put_nowait(json.dumps(request))
        self.settle()

    def see(self, *vehicles):
        self.loop.call_soon(self.pilots.stops.set_vehicles, vehicles, pilots.elapsed_s())
        self.settle()

    def tick(self):
        """A tenth of a second passes."""
        self.loop.call_soon(functools.partial(self.pilots.tick, pilots.elapsed_s(), is_for_token=True))
        self.settle()

    def close(self):
        for task in self.tasks:
            task.cancel()
        self.settle()
        self.loop.close()


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Clock of the helm: clock[0] is the time, s."""
    now_s = [100.0]
    monkeypatch.setattr(pilots, "elapsed_s", lambda: now_s[0])
    return now_s


@pytest.fixture
def server(monkeypatch):
    server = Server()

    async def sleep(seconds, sleep=asyncio.sleep):
        server.sleeps.append(seconds)
        await sleep(0)

    monkeypatch.setattr(pilots, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": sleep}))
    yield server
    server.close()


def test_vehicles_are_shown_while_a_page_is_visible(server):
    for topics in ([TOPIC, "/unknown", 7, [TOPIC]], [], None, [TOPIC]):
        server.ask(op="show", vehicles=topics)
    server.leave(server.page)
    assert server.shown == [{TOPIC}, set(), set(), {TOPIC}, set()]


def test_the_watch_sleeps_until_a_page_or_a_stopped_vehicle_comes(server):
    def is_awake():
        server.sleeps.clear()
        server.settle()
        return bool(server.sleeps)

    server.see()
    server.leave(server.page)
    server.run(server.pilots.watch())
    assert not is_awake()
    page = server.open()
    assert is_awake()
    assert page.got["token"]
    server.ask(page, op="stop")
    server.leave(page)
    assert not is_awake()
    assert "hold" not in server.done
    server.see(DRONE)
    assert is_awake()
    assert server.done.count("hold") > 2


@pytest.mark.parametrize("is_page_lost", [True, False])
def test_the_vehicle_stops_at_the_end_of_a_page_or_of_the_server(server, is_page_lost):
    watching = server.run(server.pilots.watch())
    server.ask(op="take", vehicle=TOPIC)
    server.ask(op="steer", token=server.page.got["token"][-1], motion={"x": 1})
    assert server.done[-1] == (1.0, 0.0, 0.0, 0.0)
    if is_page_lost:
        server.leave(server.page)
    else:
        watching.cancel()
        server.settle()
    assert server.done[-1] == "neutral"


def test_a_fault_is_reported_and_the_next_tick_stops_vehicles_all_the_same(server):
    server.ask(op="stop")
    server.is_broken = True
    server.run(server.pilots.watch())
    assert "ZeroDivisionError" in server.faults[0]
    server.is_broken, before = False, len(server.done)
    server.settle()
    assert "neutral" in server.done[before:]


def test_the_newest_stop_is_acknowledged_once_all_are_filed_or_later(server, clock):
    for number in (1, 2):
        server.is_written = False
        server.ask(op="stop", number=number)
    assert server.done.count("hold") == 2  # DDS does not wait
    assert server.page.got["stopped"] == []
    server.is_written = True
    server.settle()
    assert server.page.got["stopped"] == [2]
    server.is_written = False
    server.ask(op="stop", number=3)
    assert server.page.got["stopped"] == [2]
    clock[0] += pilots.FILE_TIMEOUT_S
    server.settle()
    assert server.page.got["stopped"] == [2, 3]


def test_a_stop_during_the_acknowledgement_of_another_is_acknowledged(server):
    server.page.reads.clear()
    server.ask(op="stop", number=1)
    server.ask(op="stop", number=2)
    server.page.reads.set()
    server.settle()
    assert server.page.got["stopped"] == [1, 2]


@pytest.mark.parametrize(
    "garbage",
    [
        *("{", "[]", "null", "[" * 100000, b"\xff", '{"op": 1}', '{"op": [1]}', '{"op": "steer"}'),
        *('{"op": "stop", "vehicles": ""}', '{"op": "stop", "vehicles": [1]}', '{"op": "stop", "vehicles": {"a": 1}}'),
        '{"op": "stop", "vehicle": "/nothing"}',
        '{"op": "resume", "vehicle": [1]}',
        '{"op": "watch", "recording": [1]}',
    ],
)
def test_garbage_at_the_helm_is_refused_and_nothing_else(server, garbage):
    server.page.requests.put_nowait(garbage)
    server.settle()
    assert (len(server.page.got["refused"]), server.done) == (1, [])
    server.ask(op="take", vehicle=TOPIC)
    assert server.page.drone["pilot"] == "you"


def test_who_may_only_look_stops_and_does_not_resume(server):
    viewer = server.open(may_steer=False)
    for request in ("stop", "resume"):
        server.ask(viewer, op=request, vehicle=TOPIC)
    assert server.done[-1] == "hold"
    assert server.page.drone["held"]["why"] == "Viewer 2 pressed STOP"
    assert ["view-only" in refusal for refusal in viewer.got["refused"]] == [True]


@pytest.mark.parametrize(("token", "moves"), [(1, True), (1.0, True), (True, False), (1.5, False), ("1", False)])
def test_a_token_is_a_number_without_a_fraction_however_it_is_written(server, token, moves):
    server.tick()
    server.ask(op="take", vehicle=TOPIC)
    server.ask(op="steer", token=token, motion={"x": 1})
    assert server.done == ["neutral", (1.0, 0.0, 0.0, 0.0)][: 1 + moves]


MOVING = {
    "take": ({}, lambda drone: drone["pilot"] == "you"),
    "resume": ({}, lambda drone: drone["held"] is None),
    "goal": ({"frame": "odom", "x": 1, "y": 2, "z": 0}, lambda drone: drone["goal"]),
}


@pytest.mark.parametrize("operation", MOVING)
@pytest.mark.parametrize(("late_s", "is_followed"), [(0.0, True), (1.4, True), (1.6, False), (60.0, False)])
def test_a_stalled_connection_delivers_no_request_that_moves_a_vehicle(server, clock, operation, late_s, is_followed):
    request, is_done = MOVING[operation]
    server.tick()
    if operation == "resume":
        server.ask(op="stop", vehicle=TOPIC)
    clock[0] += late_s
    server.ask(op=operation, vehicle=TOPIC, token=server.page.got["token"][-1], **request)
    assert bool(is_done(server.page.drone)) == is_followed
    assert server.goals == [TOPIC] * (is_followed and operation == "goal")
    assert len(server.page.got["refused"]) == (not is_followed)


def test_a_page_that_reads_slowly_gets_the_newest_state_and_no_stale_token(server):
    server.page.unread = 1
    server.ask(op="take", vehicle=TOPIC)
    server.tick()
    assert (server.page.got["token"], len(server.page.got["vehicles"])) == ([], 1)
    server.page.unread = 0
    server.tick()
    assert (server.page.got["token"], server.page.drone["pilot"]) == ([2], "you")


def test_a_goal_for_a_vehicle_that_is_steered_is_refused(server):
    server.ask(op="take", vehicle=TOPIC)
    server.ask(op="goal", vehicle=TOPIC, **MOVING["goal"][0])
    assert (server.goals, len(server.page.got["refused"])) == ([], 1)


def test_the_helm_is_handed_to_a_number_with_a_point(server):
    other = server.open()
    server.ask(op="take", vehicle=TOPIC)
    server.ask(other, op="ask", vehicle=TOPIC)
    [asking] = server.page.drone["asked"]
    server.ask(op="hand_over", to=float(asking["number"]))
    assert other.drone["pilot"] == "you"


def test_pages_beyond_a_limit_may_only_stop_and_watchers_take_no_place(server, monkeypatch):
    monkeypatch.setattr(pilots, "MAX_PILOTS", 2)
    monkeypatch.setattr(pilots, "MAX_STOPPERS", 3)
    *others, late, closed, refused = [server.open(may_steer=each) for each in (False, False, True, True, False, True)]
    assert [(each.told["may_steer"], each.told["limit"]) for each in others] == [(False, ""), (False, ""), (True, "")]
    assert (late.told["may_steer"], "only stop" in late.told["limit"]) == (False, True)
    assert all("The limit of 3 pages that can only stop" in each.got["refused"][0] for each in (closed, refused))
    for request in ("take", "resume", "goal", "stop"):
        server.ask(late, op=request, vehicle=TOPIC)
    assert (server.done, late.got["refused"]) == (["neutral", "hold"], [late.told["limit"]])


def test_requests_beyond_a_rate_are_dropped_except_a_stop_and_a_release(server):
    for _ in range(pilots.MAX_REQUESTS_PER_TOKEN):
        server.ask(op="hello", name="Anne")
    server.ask(op="take", vehicle=TOPIC)
    assert (server.done, len(server.page.got["refused"])) == ([], 1)
    server.ask(op="stop", vehicle=TOPIC)
    assert server.done[-1] == "hold"
    assert server.page.drone["held"]["why"] == "you pressed STOP"
    server.tick()
    server.ask(op="take", vehicle=TOPIC)
    for _ in range(2 * pilots.MAX_REQUESTS_PER_TOKEN):
        server.ask(op="steer", token=0, motion={"x": 1})
    assert server.page.drone["pilot"] == "you"
    server.ask(op="release")
    assert server.page.drone["pilot"] is None


def test_a_page_that_stops_endlessly_and_reads_nothing_grows_no_server(server):
    deaf = server.open(may_steer=False)
    deaf.reads.clear()
    for number in range(50 * pilots.MAX_REQUESTS_PER_TOKEN):
        deaf.requests.put_nowait(json.dumps({"op": "stop", "vehicle": TOPIC, "number": number}))
    while not deaf.requests.empty():
        server.settle()
    assert len(pilots._sending) <= 2 * pilots.MAX_REQUESTS_PER_TOKEN
    assert server.done.count("hold") == pilots.MAX_REQUESTS_PER_TOKEN
    server.tick()
    assert server.done.count("hold") == pilots.MAX_REQUESTS_PER_TOKEN + 1
    deaf.reads.set()
    server.settle()
