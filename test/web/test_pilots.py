# SPDX-License-Identifier: Apache-2.0
"""Messages to pages about STOP, and handling of requests. No socket, no ROS, and a fake clock."""

import asyncio
import contextlib
import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from builtin_interfaces.msg import Time

pytest.importorskip("websockets.asyncio.server", reason="Ubuntu's websockets may be older")

from websockets.exceptions import ConnectionClosedOK

from drone_bridge.msg import HoldStatus
from drone_bridge.tools.web import pilots
from drone_bridge.tools.web.helm import NEUTRAL
from drone_bridge.tools.web.vehicles import SteeredVehicle

TOPIC = "/dronegui/cmd_vel_stamped"
NODE = "/dronegui/dronegui_bridge"
DRONE = SteeredVehicle(TOPIC, "dronegui_bridge", targets=(f"{NODE}/helm", TOPIC), holds=(f"{NODE}/hold",))
ROVER = SteeredVehicle("/rover/cmd_vel_stamped", "robot_bridge", holds=("/rover/robot_bridge/hold",))
REPORTING = replace(DRONE, targets=(f"{NODE}/helm",), reporters=(NODE,))
OF_ANOTHER_MAKE = SteeredVehicle(TOPIC, "somebodys_bridge", targets=(TOPIC,))
GONE = [{"topic": TOPIC, "name": "dronegui"}]


class Page:
    """Page on a connection that reads immediately."""

    def __init__(self):
        self.told = {}
        self.tokens, self.refusals, self.stopped = [], [], []
        self.transport = SimpleNamespace(get_write_buffer_size=lambda: 0, abort=lambda: None)
        self._requests = asyncio.Queue()

    def ask(self, **request):
        self._requests.put_nowait(json.dumps(request))

    def leave(self):
        self._requests.put_nowait("")

    async def close(self, code, reason):
        self.refusals.append(reason)

    async def send(self, text):
        message = json.loads(text)
        if message["op"] == "vehicles":
            self.told = message
        elif message["op"] == "token":
            self.tokens.append(message["token"])
        elif message["op"] == "stopped":
            self.stopped.append(message["number"])
        elif message["op"] == "refused":
            self.refusals.append(message["reason"])

    async def recv_streaming(self):
        request = await self._requests.get()
        if not request:
            raise ConnectionClosedOK(None, None)
        yield request


class Keeper:
    """Keeper of the wish file, whose disk may be slow."""

    def __init__(self):
        self.kept, self.is_written, self.problem = [], True, ""

    def keep(self, wishes):
        self.kept.append([(wish.name, wish.id) for wish in wishes])

    def wait(self, timeout_s):
        return self.is_written


class Server:
    """Conversation with one page, and its requests to vehicles."""

    def __init__(self):
        self.page = Page()
        self.asked, self.commands = [], []
        self.done = []  # of both, in order
        self.wishes, self.faults, self._ticks = [], [], 0
        self.keeper = Keeper()
        self.pilots = pilots.Pilots(self._send, self._ask, self._wish, Time, self.faults.append, keeper=self.keeper)
        self.pilots.set_vehicles([DRONE])

    def _send(self, topic, motion, stamp):
        self.commands.append((topic, motion, stamp))
        self.done.append("neutral" if motion == NEUTRAL else "motion")

    def _ask(self, topic, is_held, answer):
        self.asked.append((topic, is_held, answer))
        self.done.append("hold" if is_held else "resume")

    def _wish(self, node, id_, reason):
        self.wishes.append((node, id_))
        self.done.append("wish" if id_ else "no wish")

    async def report(self, run="1", wish="", before=0, releases=0, **held):
        """The reporting drone's node reports its hold."""
        status = HoldStatus(run=run, wish=wish, releases_before_wish=before, releases=releases, **held)
        self.pilots.set_status(NODE, status)
        await self.settle()

    def tick(self):
        """A tenth of a second passes."""
        self._ticks += 1
        self.pilots._tick(pilots.elapsed_s() + self._ticks / 10, is_for_token=True)

    async def settle(self):
        """Deliver all pending messages."""
        for _ in range(20):
            await asyncio.sleep(0)

    async def ask(self, **request):
        self.page.ask(**request)
        await self.settle()

    async def see(self, *vehicles):
        self.pilots.set_vehicles(vehicles)
        await self.settle()

    async def answer(self, problem):
        self.asked[-1][2](problem)
        await self.settle()

    @property
    def problem(self):
        return self.page.told["vehicles"][0]["held"]["problem"]

    @property
    def unanswered(self):
        return self.page.told["unanswered"]


@pytest.fixture
def clock(monkeypatch):
    """Clock of the helm: clock[0] is the time, s."""
    now_s = [100.0]
    monkeypatch.setattr(pilots, "elapsed_s", lambda: now_s[0])
    return now_s


def conversation(run):
    """Run a coroutine function with a server and a connected page, and disconnect it."""

    async def converse():
        server = Server()
        talking = asyncio.ensure_future(server.pilots(server.page, True))
        await server.settle()
        await run(server)
        server.page.leave()
        await talking

    asyncio.run(converse())


def test_vehicles_are_shown_while_a_page_is_visible(clock):
    shown = []

    async def run(server):
        server.pilots.show = shown.append
        for topics in ([TOPIC, "/unknown", 7, [TOPIC]], [], None, [TOPIC]):
            await server.ask(op="show", vehicles=topics)

    conversation(run)
    assert shown == [{TOPIC}, set(), set(), {TOPIC}, set()], "the last one, as the page has left"


def test_whoever_watches_for_pilots_sleeps_until_somebody_comes(clock, monkeypatch):
    sleeps, sleep = [], asyncio.sleep
    monkeypatch.setattr(pilots, "TOKEN_PERIOD_S", 0.0)

    async def noted(seconds):
        sleeps.append(seconds)
        await sleep(0)

    async def converse():
        server = Server()
        watching = asyncio.ensure_future(server.pilots.watch())
        await server.settle()
        assert not sleeps
        talking = asyncio.ensure_future(server.pilots(server.page, True))
        while not server.page.tokens:
            await sleep(0)
        server.page.leave()
        await talking
        await server.settle()
        sleeps.clear()
        await server.settle()
        assert not sleeps
        watching.cancel()

    monkeypatch.setattr(pilots, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": noted}))
    asyncio.run(converse())


def test_vehicle_that_appears_after_stop_all_is_stopped_without_a_page(clock, monkeypatch):
    monkeypatch.setattr(pilots, "TOKEN_PERIOD_S", 0.0)

    async def converse():
        server = Server()
        await server.see()
        watching = asyncio.ensure_future(server.pilots.watch())
        talking = asyncio.ensure_future(server.pilots(server.page, True))
        await server.ask(op="stop")
        server.page.leave()
        await talking
        for _ in range(20):
            await server.settle()
        assert server.asked == []
        await server.see(DRONE)
        server.asked.clear()
        for _ in range(100):
            clock[0] += 1.0
            await server.settle()
        assert (TOPIC, True) in [each[:2] for each in server.asked]
        watching.cancel()

    asyncio.run(converse())


@pytest.mark.parametrize("request_of_stop", [{"op": "stop"}, {"op": "stop", "vehicle": TOPIC}])
def test_stop_unanswered_within_a_second_is_a_problem_until_answered(clock, request_of_stop):
    async def run(server):
        await server.ask(**request_of_stop)
        assert server.asked[-1][:2] == (TOPIC, True)
        assert server.problem == ""
        clock[0] += 1.1
        await server.see(DRONE)
        assert server.problem == "no confirmation yet"
        await server.answer("")
        assert server.problem == ""

    conversation(run)


def test_vehicle_without_reports_gets_neutral_and_repeated_calls(clock):
    async def run(server):
        await server.ask(op="stop", vehicle=TOPIC)
        for _ in range(2):
            server.tick()
        assert server.done == ["neutral", "hold"] * 3
        await server.answer("")
        server.tick()
        assert server.done == ["neutral", "hold"] * 3

    conversation(run)


def test_wish_is_published_until_reported_and_ends_with_a_resume_here(clock):
    async def run(server):
        await server.see(REPORTING)
        await server.ask(op="stop", vehicle=TOPIC, number=3)
        server.tick()
        assert server.done == ["wish", "wish"]  # nothing else, as the rest follows from the state
        assert len(set(server.wishes)) == 1
        assert server.page.stopped == [3]
        (_, id_) = server.wishes[0]
        await server.report(wish=id_, held=True)
        server.tick()
        assert server.done == ["wish", "wish"]
        assert server.page.told["vehicles"][0]["held"]["is_sure"]
        await server.ask(op="resume", vehicle=TOPIC)
        assert server.done[2:] == ["no wish", "resume"]

    conversation(run)


def test_the_wish_file_has_a_wish_until_it_is_resumed_here_or_elsewhere(clock):
    async def run(server):
        await server.see(REPORTING)
        for releases, resume in ((1, False), (0, True)):
            await server.ask(op="stop", vehicle=TOPIC, number=3)
            (_, id_) = server.wishes[-1]
            assert server.keeper.kept[-1] == [(TOPIC, id_)]
            await server.report(wish=id_, held=True)
            if resume:
                await server.ask(op="resume", vehicle=TOPIC)
            await server.report(wish=id_, held=False, releases=releases)
            assert server.keeper.kept[-1] == []
        assert len(server.keeper.kept) == 4  # only on changes

    conversation(run)


def test_stop_is_acknowledged_once_the_wish_file_is_written_or_later(clock, monkeypatch):
    async def run(server):
        await server.see(REPORTING)
        server.keeper.is_written = False
        await server.ask(op="stop", vehicle=TOPIC, number=3)
        assert server.wishes  # DDS does not wait
        assert server.page.stopped == []
        server.keeper.is_written = True
        await asyncio.sleep(2 * pilots.FILE_PERIOD_S)
        await server.settle()
        assert server.page.stopped == [3]
        server.keeper.is_written = False
        await server.ask(op="stop", vehicle=TOPIC, number=4)
        assert server.page.stopped == [3]
        clock[0] += pilots.FILE_TIMEOUT_S
        await asyncio.sleep(2 * pilots.FILE_PERIOD_S)
        await server.settle()
        assert server.page.stopped == [3, 4]

    conversation(run)


def test_a_wish_file_that_can_t_be_written_is_reported_on_the_page(clock):
    async def run(server):
        await server.see(REPORTING)
        await server.ask(op="stop", number=3)
        assert server.page.told["vehicles"][0]["held"]["unkept"] == ""
        server.keeper.problem = "the disk is full"
        server.pilots.show_problem()
        await server.settle()
        assert server.page.told["vehicles"][0]["held"]["unkept"] == "the disk is full"
        assert "the disk is full" in server.page.told["all_stopped"]

    conversation(run)


def test_a_wish_outlives_a_restarted_bridge_that_says_that_it_is_not_held(clock):
    async def run(server):
        await server.see(REPORTING)
        await server.ask(op="stop", vehicle=TOPIC)
        (_, id_) = server.wishes[-1]
        await server.report(run="1", wish=id_, held=True)
        server.done.clear()
        await server.report(run="2", held=False)
        assert server.page.told["vehicles"][0]["held"]["why"] == "you pressed STOP"
        server.tick()
        assert server.done == ["wish"]
        assert server.wishes[-1] == (NODE, id_)

    conversation(run)


def test_release_by_other_means_ends_the_wish_and_releases_nothing(clock):
    async def run(server):
        await server.see(REPORTING)
        await server.ask(op="stop", vehicle=TOPIC)
        (_, id_) = server.wishes[-1]
        await server.report(wish=id_, held=True, before=4, releases=4)
        server.done.clear()
        await server.report(wish=id_, held=False, before=4, releases=5)
        assert server.done == ["no wish"]
        assert server.page.told["vehicles"][0]["held"] is None
        server.tick()
        assert server.done == ["no wish"]

    conversation(run)


def test_vehicle_not_yet_found_by_a_new_server_is_stopped_once_found(clock):
    async def run(server):
        await server.see()
        await server.ask(op="stop", vehicles=[TOPIC, "/no_vehicle"], number=1)
        assert server.page.stopped == [1]
        assert server.unanswered == GONE
        await server.see(REPORTING)
        assert [node for node, _ in server.wishes] == [NODE]

    conversation(run)


def test_vehicles_that_never_were_are_bounded(clock):
    async def run(server):
        topics = [f"/{number}/cmd_vel_stamped" for number in range(2 * pilots.MAX_WANTED)]
        await server.ask(op="stop", vehicles=topics)
        assert len(server.unanswered) == pilots.MAX_WANTED

    conversation(run)


def test_vehicle_that_is_gone_is_stopped_whatever_else_a_page_has_stopped(clock):
    async def run(server):
        await server.see()
        await server.ask(op="stop", vehicles=[f"/{number}/cmd_vel_stamped" for number in range(pilots.MAX_WANTED)])
        await server.ask(op="stop", vehicle=TOPIC)
        assert server.page.refusals == []
        await server.see(REPORTING)
        assert [node for node, _ in server.wishes] == [NODE]

    conversation(run)


def test_resume_waits_until_a_just_released_helm_has_ended_at_the_bridge(clock, monkeypatch):
    """Its end would hold the vehicle again."""
    monkeypatch.setattr(pilots, "HELM_ENDS_WITHIN_S", 0.05)

    async def run(server):
        await server.see(REPORTING)
        await server.ask(op="take", vehicle=TOPIC)
        await server.ask(op="stop", vehicle=TOPIC)
        server.done.clear()
        await server.ask(op="release")
        assert server.done == []  # neutral would start a helm
        await server.ask(op="resume", vehicle=TOPIC)
        assert server.done == ["no wish"]
        while "resume" not in server.done:
            await asyncio.sleep(0.01)

    conversation(run)


def test_a_resume_that_is_refused_is_reported_and_not_repeated(clock):
    async def run(server):
        await server.see(REPORTING)
        await server.report(wish="7", held=True, reason="Anne pressed STOP")
        await server.ask(op="resume", vehicle=TOPIC)
        await server.answer("the request may be stale.")
        assert server.done == ["resume"]
        assert server.page.refusals == ["The vehicle is still on hold: the request may be stale."]

    conversation(run)


def test_a_stop_while_a_resume_waits_for_the_end_of_a_helm_wins(clock, monkeypatch):
    monkeypatch.setattr(pilots, "HELM_ENDS_WITHIN_S", 0.05)

    async def run(server):
        await server.see(REPORTING)
        await server.ask(op="take", vehicle=TOPIC)
        await server.ask(op="release")
        for request in ("stop", "resume", "stop"):
            await server.ask(op=request, vehicle=TOPIC)
        await asyncio.sleep(0.1)
        assert "resume" not in server.done

    conversation(run)


@pytest.mark.parametrize(("reason", "is_released"), [("the helm ended", True), ("the service hold was called", False)])
def test_a_resume_that_waits_for_the_end_of_a_helm_ends_no_newer_hold(clock, monkeypatch, reason, is_released):
    monkeypatch.setattr(pilots, "HELM_ENDS_WITHIN_S", 0.2)

    async def run(server):
        await server.see(REPORTING)
        await server.ask(op="take", vehicle=TOPIC)
        await server.ask(op="release")
        await server.ask(op="resume", vehicle=TOPIC)
        await server.report(held=True, reason=reason)
        await asyncio.sleep(0.4)
        await server.settle()
        assert ("resume" in server.done) == is_released
        assert server.page.refusals == ([] if is_released else [f"The vehicle is still on hold: {reason}."])

    conversation(run)


def test_a_resume_right_after_stop_waits_for_the_end_of_a_helm_only(clock, monkeypatch):
    monkeypatch.setattr(pilots, "HELM_ENDS_WITHIN_S", 0.2)

    async def run(server):
        await server.see(REPORTING)
        await server.ask(op="take", vehicle=TOPIC)
        await server.ask(op="release")
        await server.ask(op="stop", vehicle=TOPIC)
        (_, id_) = server.wishes[-1]
        await server.ask(op="resume", vehicle=TOPIC)
        await server.report(wish=id_, held=True, reason="Anne pressed STOP")  # in transit meanwhile
        await asyncio.sleep(0.4)
        await server.settle()
        assert server.done[-1] == "resume"

    conversation(run)


def test_who_stays_at_the_helm_is_resumed_at_once(clock):
    async def run(server):
        await server.see(REPORTING)
        await server.ask(op="take", vehicle=TOPIC)
        await server.ask(op="stop", vehicle=TOPIC)
        await server.ask(op="resume", vehicle=TOPIC)
        assert server.done[-1] == "resume"

    conversation(run)


def test_stop_all_includes_vehicles_that_come_later_until_all_are_resumed(clock):
    async def run(server):
        await server.see()
        await server.ask(op="stop")
        assert server.page.told["all_stopped"] == "you pressed STOP all"
        await server.see(REPORTING, ROVER)
        assert [each["held"]["why"] for each in server.page.told["vehicles"]] == ["you pressed STOP"] * 2
        assert (NODE in {node for node, _ in server.wishes}, server.asked[-1][:2]) == (True, (ROVER.topic, True))
        await server.ask(op="resume", vehicle=TOPIC)
        await server.see()
        await server.see(REPORTING, ROVER)
        assert [each["held"] is None for each in server.page.told["vehicles"]] == [True, False]
        await server.ask(op="resume")
        await server.see()
        await server.see(REPORTING, ROVER)
        assert [each["held"] for each in server.page.told["vehicles"]] == [None, None]
        assert server.page.told["all_stopped"] is None

    conversation(run)


def test_a_hold_that_can_t_be_kept_is_shown(clock):
    async def run(server):
        await server.see(REPORTING)
        await server.report(held=True, reason="the service hold was called", problem="the disk is full")
        held = server.page.told["vehicles"][0]["held"]
        assert (held["why"], held["unkept"]) == ("the service hold was called", "the disk is full")

    conversation(run)


def test_a_fault_is_reported_and_the_next_tick_stops_vehicles_all_the_same(clock, monkeypatch):
    monkeypatch.setattr(pilots, "TOKEN_PERIOD_S", 0.0)

    async def converse():
        server = Server()
        send = server.pilots._send_command
        server.pilots._send_command = lambda *_: 1 / 0
        with contextlib.suppress(ZeroDivisionError):
            server.pilots._stop(pilots.PagePilot(1, server.page, "Anne", True), {"vehicle": TOPIC})
        watching = asyncio.ensure_future(server.pilots.watch())
        monkeypatch.setattr(pilots, "STOP_PERIOD_S", 0.0)
        while not server.faults:
            await asyncio.sleep(0)
        assert "ZeroDivisionError" in server.faults[0]
        server.pilots._send_command = send
        while not server.commands:
            await asyncio.sleep(0)
        watching.cancel()

    asyncio.run(converse())


@pytest.mark.parametrize("named", ["", [1], {"a": 1}])
def test_vehicles_that_are_no_list_of_topics_are_refused(clock, named):
    async def run(server):
        await server.ask(op="stop", vehicles=named)
        assert (len(server.page.refusals), server.done) == (1, [])

    conversation(run)


def test_foreign_vehicle_is_stopped_by_endless_neutral_alone(clock):
    async def run(server):
        await server.see(OF_ANOTHER_MAKE)
        await server.ask(op="stop")
        server.done.clear()
        for _ in range(3):
            server.tick()
        assert server.done == ["neutral"] * 3

    conversation(run)


def test_a_stop_that_is_refused_is_a_problem_of_the_vehicle_s_own_words(clock):
    async def run(server):
        await server.ask(op="stop")
        clock[0] += 1.1
        await server.answer("the link is down")
        assert server.problem == "the link is down"

    conversation(run)


def test_vehicle_lost_without_an_answer_is_named_and_stopped_on_return(clock):
    async def run(server):
        await server.ask(op="stop")
        assert server.unanswered == []
        await server.see()
        assert server.unanswered == GONE
        clock[0] += 60.0
        await server.see(DRONE)
        assert server.unanswered == []
        assert server.problem == "no confirmation yet"
        watching = asyncio.ensure_future(server.pilots.watch())
        while len(server.asked) < 2:
            await asyncio.sleep(0)
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
        assert server.asked[-1][:2] == (TOPIC, True)

    conversation(run)


def test_a_vehicle_that_has_answered_may_go(clock):
    async def run(server):
        await server.ask(op="stop")
        await server.answer("")
        await server.see()
        assert server.unanswered == []

    conversation(run)


def test_a_vehicle_that_has_no_hold_is_not_waited_for(clock):
    async def run(server):
        await server.see(OF_ANOTHER_MAKE)
        await server.ask(op="stop")
        await server.see()
        assert server.unanswered == []

    conversation(run)


def test_who_may_only_look_stops_and_does_not_resume(clock):
    async def run(server):
        viewer = Page()
        looking = asyncio.ensure_future(server.pilots(viewer, False))
        for request in ("stop", "resume"):
            viewer.ask(op=request, vehicle=TOPIC)
            await server.settle()
        assert server.done[-1] == "hold"
        assert ["view-only" in refusal for refusal in viewer.refusals] == [True]
        viewer.leave()
        await looking

    conversation(run)


def test_resume_ends_the_stop_of_a_vehicle_that_is_gone(clock):
    async def run(server):
        await server.ask(op="stop")
        await server.see()
        await server.ask(op="resume", vehicle=TOPIC)
        assert server.unanswered == []
        await server.see(DRONE)
        assert server.page.told["vehicles"][0]["held"] is None

    conversation(run)


def test_resume_without_a_vehicle_ends_the_hold_of_all(clock, monkeypatch):
    monkeypatch.setattr(pilots, "HELM_ENDS_WITHIN_S", 0.0)

    async def run(server):
        await server.see(DRONE, ROVER)
        await server.ask(op="stop", vehicle=TOPIC)
        await server.answer("")
        server.pilots.set_held(ROVER.topic, 10**9)
        server.asked.clear()
        await server.ask(op="resume")
        assert [asked[:2] for asked in server.asked] == [(TOPIC, False), (ROVER.topic, False)]

    conversation(run)


def test_a_page_reads_since_when_and_why_a_vehicle_is_held(clock, monkeypatch):
    async def run(server):
        def held():
            return [server.page.told["vehicles"][0]["held"][name] for name in ("since", "why")]

        server.pilots.set_held(TOPIC, 5 * 10**9, is_kept=True)
        await server.settle()
        assert held() == [5.0, "from before this launch"]
        server.pilots.set_held(TOPIC, None)
        monkeypatch.setattr(pilots.time, "time", lambda: 100.0)
        await server.ask(op="stop")
        server.pilots.set_held(TOPIC, 300 * 10**9, is_kept=True)  # its bridge was restarted
        await server.settle()
        assert held() == [100.0, "you pressed STOP"]

    conversation(run)


@pytest.mark.parametrize(("token", "moves"), [(1, True), (1.0, True), (True, False), (1.5, False), ("1", False)])
def test_a_token_is_a_number_without_a_fraction_however_it_is_written(clock, token, moves):
    async def run(server):
        assert server.pilots._helm.token(clock[0]) == 1
        await server.ask(op="take", vehicle=TOPIC)
        server.commands.clear()
        await server.ask(op="steer", token=token, motion={"x": 1})
        assert [command[1] for command in server.commands] == [(1.0, 0.0, 0.0, 0.0)] * moves

    conversation(run)


GOAL = {"op": "goal", "frame": "odom", "x": 1, "y": 2, "z": 0}


@pytest.mark.parametrize("request_to_move", [{"op": "take"}, {"op": "resume"}, GOAL], ids=lambda each: each["op"])
@pytest.mark.parametrize(("late_s", "is_followed"), [(0.0, True), (1.4, True), (1.6, False), (60.0, False)])
def test_a_stalled_connection_delivers_no_request_that_moves_a_vehicle(clock, request_to_move, late_s, is_followed):
    async def run(server):
        goals = []
        await server.see(REPORTING)
        server.pilots.set_goal = lambda topic, place: goals.append(topic)
        token = server.pilots._helm.token(clock[0])
        other = Page()
        stopping = asyncio.ensure_future(server.pilots(other, False))
        await server.settle()
        if request_to_move["op"] == "resume":
            other.ask(op="stop", vehicle=TOPIC)
            await server.settle()
        clock[0] += late_s
        await server.ask(**request_to_move, vehicle=TOPIC, token=token)
        done = "resume" in server.done or bool(goals) or server.page.told["vehicles"][0]["pilot"] == "you"
        assert done == is_followed
        assert len(server.page.refusals) == (not is_followed)
        other.leave()
        await stopping

    conversation(run)


def test_the_helm_is_handed_to_a_number_with_a_point(clock):
    async def run(server):
        other = Page()
        talking = asyncio.ensure_future(server.pilots(other, True))
        await server.settle()
        await server.ask(op="take", vehicle=TOPIC)
        other.ask(op="ask", vehicle=TOPIC)
        await server.settle()
        [asking] = server.page.told["vehicles"][0]["asked"]
        await server.ask(op="hand_over", to=float(asking["number"]))
        assert other.told["vehicles"][0]["pilot"] == "you"
        other.leave()
        await talking

    conversation(run)


@pytest.mark.parametrize("way", ["neutral", "release", "leave", "silence", "the server's end"])
def test_the_vehicle_stops_when_the_pilot_lets_go_or_is_lost(clock, monkeypatch, way):
    monkeypatch.setattr(pilots, "TOKEN_PERIOD_S", 0.0)

    async def converse():
        server = Server()
        talking = asyncio.ensure_future(server.pilots(server.page, True))
        watching = asyncio.ensure_future(server.pilots.watch())
        await server.ask(op="take", vehicle=TOPIC)
        await server.ask(op="steer", token=server.page.tokens[-1], motion={"x": 1})
        assert [command[1] for command in server.commands][-1] == (1.0, 0.0, 0.0, 0.0)
        server.commands.clear()
        if way == "neutral":
            await server.ask(op="steer", token=server.page.tokens[-1], motion={})
        elif way == "release":
            await server.ask(op="release")
        elif way == "leave":
            server.page.leave()
        elif way == "silence":
            clock[0] += 0.5
        else:
            watching.cancel()
        await server.settle()
        assert {command[:2] for command in server.commands} == {(TOPIC, (0.0, 0.0, 0.0, 0.0))}
        watching.cancel()
        server.page.leave()
        await talking

    asyncio.run(converse())


def test_pages_read_the_speed_at_full_deflection_and_each_change_of_it(clock):
    async def run(server):
        for speed_m_s in (1.0, 0.4):
            server.pilots.set_max_speed(speed_m_s)
            await server.settle()
            assert server.page.told["max_speed"] == speed_m_s

    conversation(run)


def test_pages_beyond_a_limit_may_only_stop_and_more_are_refused(clock, monkeypatch):
    monkeypatch.setattr(pilots, "MAX_PILOTS", 1)
    monkeypatch.setattr(pilots, "MAX_STOPPERS", 1)

    async def run(server):
        late = Page()
        looking = asyncio.ensure_future(server.pilots(late, True))
        await server.settle()
        assert "only stop" in late.told["limit"]
        assert not late.told["may_steer"]
        for request in ("take", "resume", "goal"):
            late.ask(op=request, vehicle=TOPIC)
            await server.settle()
        late.ask(op="stop", vehicle=TOPIC)
        await server.settle()
        assert server.done[-1] == "hold"
        assert late.refusals == [late.told["limit"]]
        later = Page()
        await server.pilots(later, True)
        assert "The limit of 1 pages that can only stop" in later.refusals[0]
        late.leave()
        await looking

    conversation(run)


def test_pages_that_may_only_watch_take_no_place_of_one_that_may_steer(clock, monkeypatch):
    monkeypatch.setattr(pilots, "MAX_PILOTS", 2)
    monkeypatch.setattr(pilots, "MAX_STOPPERS", 3)

    async def run(server):
        watchers = [Page() for _ in range(4)]
        talking = [asyncio.ensure_future(server.pilots(each, False)) for each in watchers]
        await server.settle()
        assert [bool(each.refusals) for each in watchers] == [False, False, False, True]
        second = Page()
        talking.append(asyncio.ensure_future(server.pilots(second, True)))
        await server.settle()
        assert (second.told["may_steer"], second.told["limit"]) == (True, "")
        for each in (*watchers, second):
            each.leave()
        await asyncio.gather(*talking)

    conversation(run)


def test_requests_beyond_a_rate_are_dropped_except_a_stop(clock):
    async def run(server):
        for _ in range(pilots.MAX_REQUESTS_PER_TOKEN):
            await server.ask(op="hello", name="Anne")
        await server.ask(op="take", vehicle=TOPIC)
        assert (server.done, len(server.page.refusals)) == ([], 1)
        await server.ask(op="stop", vehicle=TOPIC)
        assert server.done[-1] == "hold"
        server.pilots._hand_out_token(clock[0])
        await server.ask(op="take", vehicle=TOPIC)
        assert server.page.told["vehicles"][0]["pilot"] == "you"

    conversation(run)


def test_a_page_that_stops_endlessly_and_reads_nothing_grows_no_server(clock):
    class Deaf(Page):
        is_deaf = False

        async def send(self, text):
            if self.is_deaf:
                await asyncio.Event().wait()

    async def run(server):
        deaf = Deaf()
        talking = asyncio.ensure_future(server.pilots(deaf, False))
        await server.settle()
        deaf.is_deaf = True
        for number in range(50 * pilots.MAX_REQUESTS_PER_TOKEN):
            deaf.ask(op="stop", vehicle=TOPIC, number=number)
        while not deaf._requests.empty():
            await server.settle()
        assert len(pilots._sending) <= 2 * pilots.MAX_REQUESTS_PER_TOKEN
        assert len(server.asked) == pilots.MAX_REQUESTS_PER_TOKEN
        server.tick()
        assert server.asked[-1][:2] == (TOPIC, True)
        assert len(server.asked) == pilots.MAX_REQUESTS_PER_TOKEN + 1
        talking.cancel()
        for task in pilots._sending:
            task.cancel()

    conversation(run)


def test_the_newest_of_several_stops_is_acknowledged_once_all_are_filed(clock):
    async def run(server):
        server.keeper.is_written = False
        for number in (1, 2):
            await server.ask(op="stop", vehicle=TOPIC, number=number)
        assert server.page.stopped == []
        server.keeper.is_written = True
        await asyncio.sleep(0.05)
        await server.settle()
        assert server.page.stopped == [2]
        await server.ask(op="stop", vehicle=TOPIC, number=3)
        assert server.page.stopped == [2, 3]

    conversation(run)


def test_helm_is_released_behind_all_commands_of_a_stalled_second(clock):
    async def run(server):
        await server.ask(op="take", vehicle=TOPIC)
        for _ in range(2 * pilots.MAX_REQUESTS_PER_TOKEN):
            await server.ask(op="steer", token=0, motion={"x": 1})
        await server.ask(op="release")
        assert server.page.told["vehicles"][0]["pilot"] is None

    conversation(run)


@pytest.mark.parametrize("garbage", ["{", "[]", "null", "[" * 100000, '{"op": "steer"}', b"\xff", '{"op": 1}'])
def test_garbage_at_the_helm_is_refused_and_nothing_else(clock, garbage):
    async def run(server):
        server.page._requests.put_nowait(garbage)
        await server.settle()
        assert len(server.page.refusals) == 1
        await server.ask(op="take", vehicle=TOPIC)
        assert server.page.told["vehicles"][0]["pilot"] == "you"

    conversation(run)


def test_the_end_of_a_goal_has_its_age_also_for_a_page_that_opens_later(clock):
    async def run(server):
        await server.ask(op="goal", vehicle=TOPIC, frame="odom", x=1.0, y=0.0, z=0.0)
        server.pilots.set_goal_state(TOPIC, {"state": "done", "text": "Reached."})
        clock[0] += 3600.0
        late = Page()
        looking = asyncio.ensure_future(server.pilots(late, True))
        await server.settle()
        (vehicle,) = late.told["vehicles"]
        assert vehicle["goal"]["state"] == "done"
        assert vehicle["goal"]["age_s"] == pytest.approx(3600.0)
        late.leave()
        await looking

    conversation(run)


def test_a_page_gets_the_runs_of_a_vehicles_nodes(clock):
    async def run(server):
        await server.see(REPORTING)
        await server.report(run="1")
        assert [each["runs"] for each in server.page.told["vehicles"]] == [{NODE: "1"}]
        await server.report(run="2")
        assert [each["runs"] for each in server.page.told["vehicles"]] == [{NODE: "2"}]

    conversation(run)
