# SPDX-License-Identifier: Apache-2.0
"""Playback of bags: published messages and their times."""

import re
import threading
import time
from operator import itemgetter
from types import SimpleNamespace

import pytest
import rclpy
from geometry_msgs.msg import Twist
from rclpy.validate_topic_name import validate_topic_name
from rosbags.rosbag2 import StoragePlugin
from rosgraph_msgs.msg import Clock
from std_msgs.msg import Int32, String
from written_bags import offer, write_bag

from drone_bridge.ros.commands.cmd_vel_type import UNKNOWN_NODE
from drone_bridge.ros.hold.hold_services import SERVICE_TYPE
from drone_bridge.tools.bags.bag import BagReader
from drone_bridge.tools.cli import main
from drone_bridge.tools.info.command import topic_rates
from drone_bridge.tools.play import command as play_command
from drone_bridge.tools.play import live
from drone_bridge.tools.play.player import Player, Span
from drone_bridge.tools.play.publishers import profile_of

MILLISECOND = 10**6
SECOND = 10**9
START = 1_700_000_000 * SECOND


class Taken:
    """Publisher that records messages with their times."""

    def __init__(self):
        self.messages = []
        self.came = threading.Condition()

    def publish(self, message):
        with self.came:
            self.messages.append((time.monotonic(), message))
            self.came.notify_all()

    def wait_for(self, count):
        with self.came:
            assert self.came.wait_for(lambda: len(self.messages) >= count, 60)

    @property
    def numbers(self):
        return [int.from_bytes(data[4:8], "little") for _, data in self.messages]


@pytest.fixture(params=[StoragePlugin.MCAP, StoragePlugin.SQLITE3])
def numbers(request, tmp_path):
    """A bag with 0 to 19 on /number, 50 ms apart, and a latched /name before and in the middle."""
    messages = [("/number", START + n * 50 * MILLISECOND, Int32(data=n)) for n in range(20)]
    messages += [("/name", START, String(data="first")), ("/name", START + 500 * MILLISECOND, String(data="second"))]
    messages.sort(key=lambda message: message[1])
    offers = {"/name": [offer(latched=True, depth=1)]}
    return write_bag(tmp_path / "bag", messages, offers, storage=request.param)


def playing(bag, taken, rate=1.0, span=None, latched=(), clock=None):
    topics = {topic.name: topic for topic in bag.topics}
    publishers = {topics[name]: publisher for name, publisher in taken.items()}
    span = span or Span(bag.start_ns, bag.end_ns)
    return Player(bag, publishers, [topics[name] for name in latched], span, rate=rate, clock=clock)


class TestPlayer:
    def test_publishes_everything_in_order(self, numbers):
        with BagReader(numbers) as bag:
            taken = {"/number": Taken(), "/name": Taken()}
            playing(bag, taken, rate=20.0).play()
        assert taken["/number"].numbers == list(range(20))
        assert [b"first" in data for _, data in taken["/name"].messages] == [True, False]

    def test_plays_a_part_and_says_before_it_what_was_latched(self, numbers):
        taken = {"/number": Taken(), "/name": Taken()}
        with BagReader(numbers) as bag:
            span = Span(START + 300 * MILLISECOND, START + 500 * MILLISECOND)
            playing(bag, taken, rate=20.0, span=span, latched=["/name"]).play()
        assert taken["/number"].numbers == [6, 7, 8, 9]
        assert b"first" in taken["/name"].messages[0][1]
        assert len(taken["/name"].messages) == 1

    def test_does_not_wait_any_longer_when_it_is_stopped(self, numbers):
        with BagReader(numbers) as bag:
            player = playing(bag, {})
            assert player.wait(0.01)
            threading.Timer(0.1, player.stop).start()
            assert not player.wait(3600)

    def test_pauses_and_goes_on_elsewhere_as_its_control_says(self, numbers):
        taken = Taken()
        with BagReader(numbers) as bag:
            player = playing(bag, {"/number": taken}, rate=0.001)  # the second number is due in 50 s
            thread = threading.Thread(target=player.play)
            thread.start()
            taken.wait_for(1)
            player.control(is_paused=True, rate=0.001, position_ns=START + 795 * MILLISECOND)
            assert player.is_paused
            assert player.position_s == pytest.approx(0.795)
            player.control(is_paused=False, rate=1.0)
            thread.join(60)
        assert not thread.is_alive()
        assert taken.numbers == [0, 16, 17, 18, 19]

    def test_tells_the_bags_time(self, numbers):
        taken, clock = Taken(), Taken()
        with BagReader(numbers) as bag:
            playing(bag, {"/number": taken}, rate=4.0, clock=(clock, 100.0)).play()
        times = [message.clock.sec * SECOND + message.clock.nanosec for _, message in clock.messages]
        assert times == sorted(times)
        # The first one may come late, as may all the others.
        assert START <= times[0] < times[-1] < START + 60 * SECOND


class Graph:
    """Graph with the publishers of players, as the node of each player sees it."""

    def __init__(self):
        self.publishers, self.said = [], []

    def player(self, *names):
        """Start a player that publishes on these topics. Return what it leaves out, after a look at the graph."""
        own = [SimpleNamespace(topic_name=name) for name in names]
        self.publishers += own

        def destroy(publisher):
            own.remove(publisher)
            self.publishers.remove(publisher)

        node = SimpleNamespace(
            publishers=own,
            destroy_publisher=destroy,
            get_fully_qualified_name=lambda: "/player",
            get_service_names_and_types=list,
            get_subscriptions_info_by_topic=lambda name: [],
            get_publishers_info_by_topic=lambda name: [
                SimpleNamespace(node_namespace="/", node_name=getattr(each, "node_name", "player"))
                for each in self.publishers
                if each.topic_name == name
            ],
        )
        topics = live.LiveTopics(node, names, self.said.append)

        def left_out():
            topics.refresh()
            return {name for name in names if not topics.allows(name)}

        return left_out


class TestLiveTopics:
    def test_a_player_leaves_out_what_an_earlier_one_plays(self, monkeypatch):
        clock = SimpleNamespace(now_s=0.0)
        monkeypatch.setattr(live, "time", SimpleNamespace(monotonic=lambda: clock.now_s))
        graph = Graph()
        first = graph.player("/odom", "/odom", "/imu/data")  # two topics of the bag that are renamed to one
        clock.now_s = 1.0
        assert first() == set()
        second = graph.player("/odom", "/scan")
        for _ in range(3):
            clock.now_s += 1.0
            assert second() == {"/odom"}
            assert first() == set(), "it was there before"
        left = [each.topic_name for each in graph.publishers]
        assert sorted(left) == ["/imu/data", "/odom", "/odom", "/scan"], "a live node would warn of the second /odom"

    def test_a_player_that_does_not_wait_sees_an_earlier_one_later(self, monkeypatch):
        clock = SimpleNamespace(now_s=0.0)
        monkeypatch.setattr(live, "time", SimpleNamespace(monotonic=lambda: clock.now_s))
        graph = Graph()
        earlier, graph.publishers = [SimpleNamespace(topic_name="/odom")], []
        left_out = graph.player("/odom")
        assert left_out() == set()
        graph.publishers += earlier  # discovered
        clock.now_s = 1.0
        assert left_out() == {"/odom"}

    def test_a_node_whose_name_is_not_discovered_yet_is_a_new_one(self):
        graph = Graph()
        graph.publishers.append(SimpleNamespace(topic_name="/odom", node_name=UNKNOWN_NODE))
        assert graph.player("/odom")() == {"/odom"}
        assert graph.said[0].startswith("Left out, as a new node publishes them now: /odom.")


class TestBag:
    def test_what_is_no_bag_is_refused_with_a_sentence(self, tmp_path, capsys):
        (tmp_path / "old.bag").write_bytes(b"#ROSBAG V2.0\n")
        (tmp_path / "broken").mkdir()
        (tmp_path / "broken" / "a.mcap").write_bytes(b"no")
        (tmp_path / "broken" / "metadata.yaml").write_text("rosbag2_bagfile_information: [")
        (tmp_path / "loose.mcap").write_bytes(b"no mcap")
        (write_bag(tmp_path / "whole", [("/number", START, Int32(data=1))]) / "metadata.yaml").unlink()
        killed = write_bag(tmp_path / "killed", [("/number", START, Int32(data=1))]) / "killed.mcap"
        killed.write_bytes(killed.read_bytes()[:-9])
        (tmp_path / "killed.mcap").write_bytes(killed.read_bytes())
        (tmp_path / "no_metadata").mkdir()
        (tmp_path / "no_metadata" / "a.mcap").write_bytes(killed.read_bytes())
        for name, said in (
            ("absent", "does not exist"),
            ("old.bag", "rosbags-convert"),
            ("broken", "broken"),
            ("loose.mcap", "loose.mcap"),
            ("killed.mcap", "drone-bridge recover"),
            ("killed", "drone-bridge recover"),
            ("no_metadata", "drone-bridge recover"),
            ("whole", "no metadata.yaml, so it is not a bag; each file in it can be read by itself: "),
        ):
            for command in ("play", "info", "report"):
                assert main([command, str(tmp_path / name)]) == 1
                errors = capsys.readouterr().err
                assert said in errors
                assert "Traceback" not in errors

    def test_an_empty_bag_is_said_to_be_empty(self, tmp_path, capsys):
        assert main(["info", str(write_bag(tmp_path / "bag", []))]) == 0
        assert "empty" in capsys.readouterr().out

    def test_counts_and_gaps(self, numbers, capsys):
        with BagReader(numbers) as bag:
            _, number = bag.topics
            rate = topic_rates(bag.messages())[number]
        assert rate.count == 20
        assert rate.rate_hz == pytest.approx(20.0)
        assert rate.longest_gap_ns == 50 * MILLISECOND
        assert main(["info", str(numbers)]) == 0
        printed = capsys.readouterr().out
        assert "22 messages in 0.9" in printed or "22 messages in 1.0" in printed
        assert "/number" in printed
        assert "std_msgs/msg/Int32" in printed
        assert "20.0" in printed


class PlayedNode(SimpleNamespace):
    """Node of a player beside others, which publish on /published, and where a vehicle follows /taken and /later."""

    def __init__(self):
        super().__init__(publishers=[], sent=[], rates=[])

    def create_publisher(self, kind, name, profile):
        validate_topic_name(name)

        def publish(message):
            self.sent.append((name, message if isinstance(message, Clock) else int.from_bytes(message[4:8], "little")))

        self.publishers.append(SimpleNamespace(topic_name=name, publish=publish, wait_for_all_acked=lambda _: True))
        return self.publishers[-1]

    def destroy_publisher(self, publisher):
        self.publishers.remove(publisher)

    def get_fully_qualified_name(self):
        return "/player"

    def get_service_names_and_types(self):
        return [("/robot_bridge/hold", [SERVICE_TYPE])]

    def get_subscriptions_info_by_topic(self, name):
        is_present = name == "/taken" or (name == "/later" and ("/renamed", 1) in self.sent)
        return [
            SimpleNamespace(node_namespace="/", node_name=name) for name in ["robot_bridge"] * is_present + ["rviz"]
        ]

    def get_publishers_info_by_topic(self, name):
        names = ["clock"] * (name == "/clock") + ["odometry"] * (name == "/published")
        names += ["player" for each in self.publishers if each.topic_name == name]
        return [SimpleNamespace(node_namespace="/", node_name=name) for name in names]


class TestOptions:
    @pytest.fixture
    def play(self, tmp_path, monkeypatch):
        """Return a function that plays a bag with options, and returns the exit status and the node."""
        node = PlayedNode()
        monkeypatch.setattr(live, "LOOK_PERIOD_S", 0.0)
        monkeypatch.setattr(rclpy, "init", lambda **_: None)
        monkeypatch.setattr(rclpy, "create_node", lambda *_, **__: node)
        monkeypatch.setattr("drone_bridge.ros.node.program.shut_down_ros", lambda: None)
        monkeypatch.setattr(play_command, "handle_stop_signals", lambda stop: None)

        def play(*arguments, **topics):
            sent = [(f"/{name}", n) for name, numbers in (topics or {"number": range(3)}).items() for n in numbers]
            messages = [(name, START + n * SECOND, Int32(data=n)) for name, n in sorted(sent, key=itemgetter(1))]
            bag = write_bag(tmp_path / "bag", messages)
            return main(["play", str(bag), "--delay", "0", "--rate", "20", *arguments]), node

        return play

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["--start", "100"], "lasts 2.0 s"),
            (["--topics", "/absent"], "'/absent' is not in the bag, which has /number."),
            (["--topics", "number", "--remap", "number:=no name"], "can't be published as 'no name': "),
        ],
    )
    def test_when_there_is_nothing_to_play_a_sentence_says_so(self, arguments, said, play, capsys):
        assert play(*arguments)[0] == 1
        printed = "".join(capsys.readouterr())
        assert said in printed
        assert "nothing to play" in printed

    @pytest.mark.parametrize(
        ("arguments", "numbers"),
        [
            (["--start", "1"], [1, 2, 3]),
            (["--duration", "2"], [0, 1]),
            (["--start", "1", "--duration", "2"], [1, 2]),
            (["--start", "2", "--duration", "9"], [2, 3]),
        ],
    )
    def test_a_part_is_played(self, arguments, numbers, play, capsys):
        status, node = play(*arguments, number=range(4))
        assert (status, node.sent) == (0, [("/number", number) for number in numbers])
        assert "Playing 1 topic, " in capsys.readouterr().out

    def test_topics_of_live_vehicles_are_left_out_also_of_those_that_start_later(self, play, capsys):
        names = ("free", "taken", "published", "later", "named")
        status, node = play("--remap", "/named:=/renamed", **dict.fromkeys(names, range(4)))
        assert status == 0
        sent = {name: [number for topic, number in node.sent if topic == name] for name, _ in node.sent}
        assert sent == {"/free": [0, 1, 2, 3], "/renamed": [0, 1, 2, 3], "/later": sent["/later"]}
        assert sent["/later"] in ([0], [0, 1])
        printed = capsys.readouterr().out
        assert "Playing 3 topics, 3.0 s, at 20 times the recorded speed." in printed
        for left_out in ("would take them as commands: /taken", "would take them as commands: /later"):
            assert printed.count(f"Left out, as /robot_bridge {left_out}. To play") == 1
        assert printed.count("Left out, as /odometry publishes them now: /published. To play") == 1

    @pytest.mark.parametrize("arguments", [(), ("--topics", "/taken")])
    def test_topics_of_live_vehicles_are_played_by_name(self, play, capsys, arguments):
        status, node = play(*arguments, taken=[7])
        assert (status, node.sent) == ((0, [("/taken", 7)]) if arguments else (1, []))
        assert ("nothing else to play" in capsys.readouterr().err) == (not arguments)

    def test_the_time_of_recording_is_published_with_a_warning(self, play, capsys):
        _, node = play("--clock", "50")
        times = [message.clock.sec for topic, message in node.sent if topic == "/clock"]
        assert START // SECOND <= times[0] <= times[-1] <= START // SECOND + 2  # a loaded machine publishes few
        assert "/clock is published by /clock and /player: time will jump" in capsys.readouterr().out


def test_profile_serves_every_subscription_that_was_served():
    profile = profile_of([offer(reliable=False, depth=3), offer(latched=True, depth=4)])
    assert profile.reliability.name == "RELIABLE"
    assert profile.durability.name == "TRANSIENT_LOCAL"
    assert profile.depth == 7
    assert profile_of([offer(reliable=False)]).reliability.name == "BEST_EFFORT"
    assert profile_of([offer(latched=True, depth=1)], "tf2_msgs/msg/TFMessage").depth > 100


class TestCommand:
    def test_arrives_as_it_was_recorded(self, ros, tmp_path, start_child):
        commands = [Twist() for _ in range(5)]
        for number, command in enumerate(commands):
            command.linear.x = float(number)
        messages = [("/cmd_vel", START + n * 10 * MILLISECOND, command) for n, command in enumerate(commands)]
        messages.append(("/cmd_vel", START, String(data="of another type under the same name")))
        unknown = [("/odd", "nowhere_msgs/msg/Odd", "int32 data")]
        bag = write_bag(tmp_path / "bag", messages, {"/cmd_vel": [offer(reliable=True)]}, more_types=unknown)
        heard, clock = ros.subscribe(Twist, "/renamed"), ros.subscribe(Clock, "/clock")
        ros.node.create_publisher(Clock, "/clock", 1)
        player = start_child(
            "drone-bridge", "play", bag, "--delay", "10", "--clock", "--remap", "/cmd_vel:=/renamed", "/a:=/b"
        )
        assert [heard.wait().linear.x for _ in commands] == [0.0, 1.0, 2.0, 3.0, 4.0]
        assert clock.wait().clock.sec == START // SECOND
        assert player.wait() == 0
        assert "'/odd' is skipped" in player.output
        assert re.search(r"'/cmd_vel' .* another type .*'std_msgs/msg/String'", player.output)
        assert re.search("/clock is published by .*/test_session", player.output)
