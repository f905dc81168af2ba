# SPDX-License-Identifier: Apache-2.0
"""The recorder's node on a played graph: which topics it records, by which subscriptions, and with which times."""

import re
from types import SimpleNamespace

import pytest
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from drone_bridge.tools.record import node as record
from drone_bridge.tools.record import program, settings
from drone_bridge.tools.record.node import Recorder
from drone_bridge.tools.record.settings import RecorderSettings

STRING = "std_msgs/msg/String"


class PlayedRecorder(Recorder):
    """Recorder whose graph is played."""

    def __init__(self, *, is_simulated=False):
        self.offered, self.subscribed, self.logged, self.taken = [], [], [], []
        self.simulated_ns, self._is_simulated = 0, is_simulated
        super().__init__()

    def start(self, topics=(), exclude=None):
        chosen = RecorderSettings(None, frozenset(topics), exclude and re.compile(exclude), False, 0.0)
        self.record(chosen, lambda topic, *message: self.taken.append((topic.name, *message)))
        self._discover()

    def offer(self, topic, kind=STRING, *, reliable=True, latched=False):
        """Add a publisher."""
        profile = QoSProfile(
            depth=1,
            reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
            durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
        )
        self.offered.append(SimpleNamespace(topic=topic, topic_type=kind, qos_profile=profile))

    def send(self, topic, data, published_ns=1, received_ns=0):
        """Publish to all subscriptions of a topic."""
        for each in self.subscribed:
            if each.topic == topic:
                each.waiting.append((data, {"source_timestamp": published_ns, "received_timestamp": received_ns}))

    def resolve_topic_name(self, name):
        if "!" in name:
            raise RuntimeError("as rcl's error")
        return f"/{name.removeprefix('/')}"

    def get_parameter(self, name):
        return SimpleNamespace(value=self._is_simulated)

    def get_clock(self):
        return SimpleNamespace(now=lambda: SimpleNamespace(nanoseconds=self.simulated_ns))

    def get_logger(self):
        levels = dict.fromkeys(("info", "warning", "error"), self.logged.append)
        return SimpleNamespace(**levels, debug=lambda _: None)

    def get_topic_names_and_types(self):
        return sorted((name, []) for name in {each.topic for each in self.offered})

    def get_publishers_info_by_topic(self, name):
        return [each for each in self.offered if each.topic == name]

    def count_publishers(self, name):
        return len(self.get_publishers_info_by_topic(name))

    def create_subscription(self, kind, topic, call, request, **options):
        self.subscribed.append(SimpleNamespace(topic=topic, qos_profile=request, waiting=[]))
        return self.subscribed[-1]

    def destroy_subscription(self, subscription):
        self.subscribed.remove(subscription)


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """The time, s, at which each look is a review."""
    clock = SimpleNamespace(now_s=100.0)

    def monotonic():
        clock.now_s += record.REVIEW_PERIOD_S
        return clock.now_s

    monkeypatch.setattr(record, "time", SimpleNamespace(monotonic=monotonic))
    monkeypatch.setattr(Node, "__init__", lambda self, name: None)
    monkeypatch.setattr(record, "resend_lost_responses", lambda node: None)
    monkeypatch.setattr(record, "steady_timer", lambda *_: None)
    monkeypatch.setattr(record, "arrived", lambda each, most: [each.waiting.pop(0) for _ in each.waiting[:most]])
    return clock


@pytest.mark.parametrize(
    ("choice", "topics"),
    [
        ({}, ["/a", "/b/c"]),
        ({"topics": ["/b/c", "/never"]}, ["/b/c"]),
        ({"exclude": "c$"}, ["/a"]),
        ({"topics": ["/a", "/b/c"], "exclude": "b"}, ["/a"]),
    ],
)
def test_topics_and_exclude_select(choice, topics):
    recorder = PlayedRecorder()
    for topic in ("/a", "/b/c", "/b/_hidden"):
        recorder.offer(topic)
    recorder.start(**choice)
    assert [each.name for each in recorder.topics] == [each.topic for each in recorder.subscribed] == topics


def test_a_requested_topic_that_nobody_publishes_is_named_once():
    recorder = PlayedRecorder()
    recorder.offer("/flight/a")
    recorder.start(["/flights/a", "/flight/a"])
    for _ in range(50):
        recorder._discover()
    assert recorder.logged == ["No node publishes /flights/a yet, did you mean '/flight/a'?"]


def test_unrecordable_topics_are_logged_once_and_the_rest_is_recorded(monkeypatch):
    monkeypatch.setattr(record, "MAX_TOPICS", 2)
    recorder = PlayedRecorder()
    recorder.offer("/known")
    recorder.offer("/known", "std_msgs/msg/Bool")
    recorder.offer("/unknown", "nowhere_msgs/msg/Odd")
    recorder.offer("/x", "nowhere_msgs/msg/Odd")
    recorder.offer("/x")
    recorder.start()
    recorder.offer("/later")
    for _ in range(3):
        recorder._discover()
    recorder.send("/known", b"still here")
    assert recorder.take_all() == 1
    assert [(topic, data) for topic, *_, data in recorder.taken] == [("/known", b"still here")]
    assert {each.name: each.type_name for each in recorder.topics} == {"/known": STRING, "/x": STRING}
    package = "The package 'nowhere_msgs' of 'nowhere_msgs/msg/Odd' is not installed."
    assert recorder.logged == [
        f"Not recording '/known' as 'std_msgs/msg/Bool': the topic is recorded as '{STRING}'.",
        f"Not recording '/unknown' as 'nowhere_msgs/msg/Odd': {package}",
        f"Not recording '/x' as 'nowhere_msgs/msg/Odd': {package}",
        f"Not recording '/later' as '{STRING}': there are 2 already.",
    ]


def test_a_weaker_publisher_is_received_and_what_arrived_before_is_kept():
    recorder = PlayedRecorder()
    recorder.offer("/text", latched=True)
    recorder.offer("/text")
    recorder.start()
    kept, _ = recorder.subscribed
    recorder.send("/text", b"both")
    recorder.offer("/text", reliable=False)
    recorder._discover()
    assert [data for *_, data in recorder.taken] == [b"both"]
    assert recorder.subscribed[0] is kept
    assert [each.qos_profile.reliability for each in recorder.subscribed] == [
        ReliabilityPolicy.RELIABLE,
        ReliabilityPolicy.BEST_EFFORT,
    ]
    assert ["weaker QoS" in line for line in recorder.logged] == [True]
    recorder.send("/text", b"next", 2)
    recorder.take_all()
    assert [data for *_, data in recorder.taken] == [b"both", b"next"], "each once"


def test_in_simulated_time_messages_carry_it_and_none_is_from_before():
    recorder = PlayedRecorder(is_simulated=True)
    recorder.offer("/text", latched=True)
    recorder.start()
    assert recorder.subscribed == []
    recorder.simulated_ns = 100
    recorder._discover()
    recorder.send("/text", b"1", 7, received_ns=8)
    recorder.take_all()
    recorder.simulated_ns = 200
    recorder.send("/text", b"2", -1)
    recorder.take_all()
    assert recorder.taken == [("/text", 100, 7, b"1"), ("/text", 200, 200, b"2")]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs the recorder with parameters, until a message was sent on each topic."""

    def run(sent=(), **parameters):
        class Declared(dict):
            def __init__(self, node, declarations):
                defaults = {each.name: each.default for each in declarations}
                super().__init__(defaults | {"bag": str(tmp_path / "flight")} | parameters)
                for each in declarations:
                    if problem := each.problem_with(self[each.name], ""):
                        raise ValueError(problem)

            def freeze_because(self, reason):
                pass

        def spin(recorder, stop):
            recorder._discover()
            for topic in sent:
                recorder.send(topic, b"\0\1\0\0" + bytes(10_000))
            recorder.take_all()

        monkeypatch.setattr(settings, "DeclaredParameters", Declared)
        monkeypatch.setattr(program, "spin", spin)
        recorder = PlayedRecorder()
        for topic in sent:
            recorder.offer(topic)
        return program.record(recorder, program.StopRequest()), recorder.logged

    return run


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"compression": "lz4"}, "must be one of none, zstd"),
        ({"exclude": "("}, "not a regular expression"),
        ({"topics": ["/a", "b!"]}, "an invalid topic name"),
        ({"bag": "/dev/null/flight"}, "can't be created: Not a directory"),
    ],
)
def test_bad_parameters_are_refused_with_a_sentence(run, tmp_path, parameters, sentence):
    status, logged = run(**parameters)
    assert (status, len(logged)) == (1, 1)
    assert sentence in logged[0]
    assert [*tmp_path.iterdir()] == []


def test_a_recording_ends_with_a_table_and_names_what_was_never_published(run, tmp_path, capsys):
    parameters = {"topics": ["a", "/b", "/never"], "exclude": "b$", "compression": "zstd"}
    assert run(["/a", "/b", "/c"], **parameters) == (
        0,
        [f"Recording into '{tmp_path / 'flight'}'.", "Never published, or not recordable: /b, /never."],
    )
    assert re.search(r"^/a +std_msgs/msg/String +1 +0\n1 messages in ", capsys.readouterr().out, re.MULTILINE)
    assert (tmp_path / "flight/flight.mcap").stat().st_size < 5000
    assert run(["/a"], topics=["a"]) == (0, [f"Recording into '{tmp_path / 'flight_2'}'."])
