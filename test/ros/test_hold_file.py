# SPDX-License-Identifier: Apache-2.0
"""Hold files without ROS: storage, recovery, reports of a failure, and stale files. And reports of the helm."""

import copy
import errno
import os
import platform
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from patience import TIMEOUT_S
from plain_node import PlainNode
from std_srvs.srv import SetBool

from drone_bridge.msg import HoldStatus, HoldWish
from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.hold import hold_file
from drone_bridge.ros.hold.hold import MAX_REASON, MAX_WISHES, Hold
from drone_bridge.ros.hold.hold_file import SCOPE_VARIABLE, HoldFile
from drone_bridge.ros.hold.hold_services import refusal_of
from drone_bridge.ros.hold.wish_file import EVERY_NODE, EVERY_VEHICLE, FiledWish, WishFile
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.process.log_pipe import _log_file
from drone_bridge.session import hold_state
from drone_bridge.session.hold_state import AT_HELM, HELM_ENDED


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ROS_HOME", str(tmp_path))
    monkeypatch.delenv(SCOPE_VARIABLE, raising=False)
    boots(monkeypatch, "0ff1ce")
    return tmp_path


def boots(monkeypatch, name):
    monkeypatch.setattr(hold_file, "boot_id", lambda: name)
    monkeypatch.setattr("drone_bridge.ros.hold.wish_file.boot_id", lambda: name)


def kept():
    """Reason of the hold of a vehicle whose node starts now."""
    return HoldFile(7, "/d1/bridge").read()


def test_a_restarted_node_finds_its_hold_and_other_nodes_do_not():
    file = HoldFile(7, "/d1/bridge")
    assert not kept()
    file.write("STOP was pressed")
    assert kept() == "STOP was pressed"
    assert not HoldFile(8, "/d1/bridge").read()
    assert not HoldFile(7, "/d2/bridge").read()
    file.remove()
    file.remove()
    assert not kept()


def test_it_is_below_ros_home_by_default_that_of_ros(home, monkeypatch):
    assert HoldFile(7, "/d1/bridge").path == home / "held" / "0ff1ce.7.d1.bridge"
    monkeypatch.delenv("ROS_HOME")
    monkeypatch.setenv("HOME", str(home))
    assert HoldFile(7, "/d1/bridge").path.parent == home / ".ros" / "held"


@pytest.mark.parametrize(
    ("value", "folder"),
    [
        ("~", ""),
        ("~/rosx", "rosx"),
        ("rosx", "rosx"),
        ("./rosx/../rosy", "rosx/../rosy"),
        ("", ".ros"),
        ("/rosx", "/rosx"),
    ],
)
def test_hold_wishes_and_log_are_in_one_folder_wherever_a_program_starts(home, monkeypatch, tmp_path, value, folder):
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("ROS_HOME", value)
    monkeypatch.delenv("ROS_LOG_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    assert HoldFile(7, "/d1/bridge").path.parent == home / folder / "held"
    assert WishFile(7).path.parent == home / folder / "held"
    assert Path(_log_file()).parent == Path(os.path.normpath(home / folder / "log"))


def test_hold_in_a_shared_home_ends_with_the_boot_of_its_host(monkeypatch):
    HoldFile(7, "/d1/bridge").write("ours, of the boot before")
    with monkeypatch.context() as on:
        on.setattr(platform, "node", lambda: "other")
        boots(on, "c0ffee")
        assert not kept()
        HoldFile(7, "/d1/bridge").write("the other host's")
    boots(monkeypatch, "0ff1ce2")
    assert not kept()
    HoldFile(7, "/d2/bridge").write("ours, now")
    assert sorted(path.name for path in HoldFile(7, "/d2/bridge").path.parent.iterdir()) == [
        "0ff1ce2.7.d2.bridge",
        "c0ffee.7.d1.bridge",
    ]
    boots(monkeypatch, "c0ffee")
    assert kept() == "the other host's"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_hold_is_kept_on_a_full_disk(monkeypatch, number):
    HoldFile(7, "/d1/bridge").reserve()  # at its start, or that of another node

    def write_nothing(path, data):
        path.open("xb").close()
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as full:
        full.setattr(Path, "write_bytes", write_nothing)
        assert not HoldFile(7, "/d1/bridge").keep("STOP was pressed")
        assert kept() == "STOP was pressed"
        assert "can't be written" in HoldFile(7, "/d2/bridge").keep("STOP was pressed")
    HoldFile(7, "/d1/bridge").remove()
    assert not HoldFile(7, "/d2/bridge").keep("the disk has room again")
    with monkeypatch.context() as full:
        full.setattr(Path, "write_bytes", write_nothing)
        assert not HoldFile(7, "/d1/bridge").keep("and it is full again")
    assert kept() == "and it is full again"


def test_the_id_of_a_boot_stays_the_same_and_is_a_name_of_a_file():
    assert hold_file.boot_id() == hold_file.boot_id()
    assert "/" not in hold_file.boot_id()


def test_a_hold_is_found_only_in_its_scope(monkeypatch):
    monkeypatch.setenv(SCOPE_VARIABLE, "launch/1")
    HoldFile(7, "/d1/bridge").write("an emulated vehicle")
    assert kept() == "an emulated vehicle"
    for other in ("launch/2", ""):
        monkeypatch.setenv(SCOPE_VARIABLE, other)
        assert not kept()


# Reports of hold about the file.


class Node(PlainNode):
    """Node for Hold."""

    has_just_stood_still = False

    def __init__(self, *, is_server=False):
        super().__init__()
        self.is_server, self.statuses = is_server, []
        self.hold = Hold(self, is_server=self.is_server)

    def get_fully_qualified_name(self):
        return "/d1/bridge"

    def get_namespace(self):
        return "/d1"

    def resolve_topic_name(self, name):
        return f"/d1/{name}"

    def create_publisher(self, kind, *_, **__):
        publish = self.statuses.append if kind is HoldStatus else lambda message: self.published.append(message.data)
        return SimpleNamespace(publish=lambda message: publish(copy.copy(message)))

    def create_subscription(self, kind, topic, callback, qos):
        self.wish = lambda id_, reason="Anne pressed STOP": callback(HoldWish(id=id_, reason=reason))

    def check_age(self, what):
        if self.has_just_stood_still:
            raise ValueError(f"{what} is too old")

    def call(self, data, is_followed=True):
        answer = self.serve(SetBool.Request(data=data), SetBool.Response())
        assert answer.success == is_followed
        return answer.message


def test_the_response_names_the_file(home):
    node = Node()
    assert str(home / "held" / "0ff1ce.7.d1.bridge") in node.call(True)
    assert Node().hold.is_held
    for _ in range(2):
        assert node.call(False) == "The vehicle follows commands."
        assert node.statuses[-1].releases == 1
    assert not Node().hold.is_held


def test_it_is_written_only_on_changes(home):
    node = Node()
    node.call(True)
    HoldFile(7, "/d1/bridge").remove()
    node.call(True)
    assert not kept()


def test_unwritable_hold_file_is_reported_and_the_vehicle_is_held(home):
    (home / "held").write_text("no folder")
    node = Node()
    assert not node.hold.is_held  # a path without a folder never had a file
    answer = node.call(True)
    assert "will not hold again" in answer
    assert str(home / "held") in answer
    assert node.hold.is_held
    assert node.published[-1] is True
    assert "can't be written" in node.statuses[-1].problem
    (home / "held").unlink()
    assert "will not hold again" not in node.call(True)  # a new request retries
    assert Node().hold.is_held


def test_unremovable_hold_file_is_reported_and_the_vehicle_released(home):
    node = Node()
    node.call(True)
    file = HoldFile(7, "/d1/bridge").path
    file.unlink()
    file.mkdir()  # which unlink refuses
    answer = node.call(False)
    assert "it will hold again" in answer
    assert not node.hold.is_held


def test_stale_requests_may_hold_but_not_release():
    node = Node()
    node.has_just_stood_still = True
    node.call(True)
    assert node.hold.is_held
    assert node.call(False, is_followed=False) == "resume is too old"
    assert node.hold.is_held
    node.has_just_stood_still = False
    node.call(False)
    assert not node.hold.is_held


# Wishes.


def test_a_wish_is_handled_once_and_reported_with_the_releases_before_it():
    node = Node()
    node.call(True)
    node.call(False)
    node.wish("7")
    taken = node.statuses[-1]
    assert (taken.held, taken.wish, taken.releases_before_wish, taken.releases) == (True, "7", 1, 1)
    assert taken.reason == "Anne pressed STOP"
    node.call(False)
    count = len(node.statuses)
    node.wish("7")  # repeated, as its report was lost
    after = node.statuses[-1]
    assert len(node.statuses) > count
    assert (after.held, after.wish, after.releases_before_wish, after.releases) == (False, "7", 1, 2)
    node.wish("8")
    assert node.statuses[-1].held


def test_a_hold_that_a_wish_begins_is_published_once():
    node = Node()
    count = len(node.statuses)
    node.wish("7")
    assert [(each.held, each.wish) for each in node.statuses[count:]] == [(True, "7")]
    assert node.conditions["hold"] == "holding: Anne pressed STOP"


def test_the_reason_of_a_wish_is_one_short_line():
    node = Node()
    node.wish("7", "STOP\n" + 200 * "!")
    assert len(node.statuses[-1].reason) == MAX_REASON
    assert node.statuses[-1].reason.isprintable()


def test_the_end_of_a_wish_releases_nothing():
    node = Node()
    node.wish("7")
    node.wish("")
    assert node.hold.is_held
    assert node.statuses[-1].wish == "7"


def test_each_run_has_an_id_and_reports_a_hold_that_it_has_inherited():
    first = Node()
    first.wish("7")
    assert not first.statuses[-1].is_inherited
    first.hold._writer.wait(TIMEOUT_S)
    second = Node()
    assert (second.statuses[-1].held, second.statuses[-1].is_inherited, second.statuses[-1].wish) == (True, True, "")
    assert second.statuses[-1].run != first.statuses[-1].run
    second.call(False)
    assert not second.statuses[-1].is_inherited


def test_a_slow_disk_delays_only_the_response(monkeypatch):
    write, may_write = HoldFile.write, threading.Event()

    def write_slowly(file, reason):
        may_write.wait()
        write(file, reason)

    monkeypatch.setattr(HoldFile, "write", write_slowly)
    node = Node()
    node.wish("7")  # which does not wait
    assert node.hold.is_held
    assert "still being written" in node.call(True)
    assert "still being written" in node.call(False)
    node.call(True)
    may_write.set()
    assert node.hold._writer.wait(TIMEOUT_S)
    assert Node().hold.is_held


@pytest.mark.parametrize("reason", ["", AT_HELM, HELM_ENDED])
def test_no_helm_ends_the_hold_of_a_wish_whatever_its_reason(reason):
    node = Node()
    node.wish("7", reason)
    assert not node.hold.state.steer(elapsed_s())
    assert node.hold.is_held


def test_a_response_does_not_wait_for_a_file_without_a_writer():
    node = Node()
    assert node.hold._writer.wait(0.0)
    assert node.call(False) == "The vehicle follows commands."


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_reason_in_any_script_is_kept_in_any_locale(monkeypatch, encoding):
    write, read = Path.write_text, Path.read_text
    monkeypatch.setattr(Path, "write_text", lambda path, text, named=encoding, **rest: write(path, text, named, **rest))
    monkeypatch.setattr(Path, "read_text", lambda path, named=encoding, **rest: read(path, named, **rest))
    node = Node()
    node.wish("7", reason := "Ἄννα pressed STOP")
    node.hold.finish()
    assert kept() == reason


def test_the_end_of_a_node_waits_for_its_file(monkeypatch):
    write, is_ending = HoldFile.write, threading.Event()

    def write_at_the_end(file, reason):
        is_ending.wait(TIMEOUT_S)
        write(file, reason)

    monkeypatch.setattr(HoldFile, "write", write_at_the_end)
    monkeypatch.setattr("drone_bridge.ros.hold.hold.FILE_TIMEOUT_S", 10.0)
    node = Node()
    node.wish("7")
    assert not kept()
    is_ending.set()
    node.hold.finish()
    assert kept()


def test_of_many_wishes_the_newest_are_remembered():
    node = Node()
    for number in range(2 * MAX_WISHES):
        node.wish(str(number))
    assert len(node.hold._wishes) == MAX_WISHES


# Files that can't be read.


@pytest.fixture
def unreadable(home):
    """Path of a node's file that can't be read, and can be removed by rmdir."""
    path = HoldFile(7, "/d1/bridge").path
    path.mkdir(parents=True)
    return path


def test_a_file_that_can_t_be_read_holds_until_a_person_resumes(unreadable):
    node = Node()
    status = node.statuses[-1]
    assert status.held
    assert str(unreadable) in status.reason
    assert "rm -r" in status.reason
    unreadable.rmdir()
    node.hold.poll_files()
    assert node.hold.is_held
    node.wish("7")
    assert node.statuses[-1].wish == "7"
    node.call(False)
    assert not node.hold.is_held


def test_a_file_without_permission_names_the_command_that_grants_it(monkeypatch):
    def refuse(path, *_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_text", refuse)
    reason = Node().statuses[-1].reason
    assert "Permission denied" in reason
    assert "chmod" in reason


@pytest.mark.parametrize("number", [errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG])
def test_a_file_that_can_not_exist_holds_nothing(monkeypatch, number):
    def fail(path, *_, **__):
        raise OSError(number, "", str(path))

    monkeypatch.setattr(Path, "read_text", fail)
    assert not Node().hold.is_held


# Wishes in files.


@pytest.fixture
def wish_file():
    file = WishFile(7)
    yield file
    file.remove()


NAMES = ["/d1/bridge", "/d1", "/d1/cmd_vel_stamped", EVERY_NODE, EVERY_VEHICLE]


@pytest.mark.parametrize("name", NAMES)
def test_a_wish_in_a_file_holds_from_the_first_moment(wish_file, name):
    wish_file.write([FiledWish(name, "7", "Anne pressed STOP")])
    node = Node()
    assert node.hold.is_held
    status = node.statuses[-1]
    assert (status.held, status.wish, status.reason, status.is_inherited) == (True, "7", "Anne pressed STOP", False)
    node.hold._writer.wait(TIMEOUT_S)
    assert kept() == "Anne pressed STOP"


def test_a_wish_in_a_file_holds_once_however_many_follow(wish_file):
    wish_file.write([FiledWish(EVERY_VEHICLE, "first", "Anne pressed STOP")])
    node = Node()
    assert node.hold.is_held
    for number in range(2 * MAX_WISHES):
        node.call(False)
        node.hold.poll_files()
        assert not node.hold.is_held
        node.wish(str(number))


@pytest.mark.parametrize("name", ["/d2", "/d1/other", "/d1/bridge/other", "/d2/cmd_vel_stamped"])
def test_wishes_for_others_hold_nothing(wish_file, name):
    wish_file.write([FiledWish(name, "7", ""), FiledWish(EVERY_VEHICLE, "8", "", ("/d1/cmd_vel_stamped",))])
    assert not Node().hold.is_held


def test_a_server_is_none_of_the_vehicles_that_follow_velocities(wish_file):
    wish_file.write([FiledWish(EVERY_VEHICLE, "7", ""), FiledWish("/d1/cmd_vel_stamped", "8", "")])
    assert not Node(is_server=True).hold.is_held
    wish_file.write([FiledWish(EVERY_NODE, "9", "")])
    assert Node(is_server=True).hold.is_held


def test_a_wish_that_is_written_later_holds_at_the_next_look(wish_file):
    node = Node()
    dropped = []
    node.hold.when_set(lambda: dropped.append(1))
    wish_file.write([FiledWish("/d1/bridge", "7", "")])
    node.hold.poll_files()
    assert node.hold.is_held
    assert dropped
    count = len(node.statuses)
    node.hold.poll_files()
    node.wish("7")  # the same one, by DDS
    assert len(node.statuses) == count + 1
    assert len(dropped) == 1


def test_between_reads_a_look_reads_files_if_the_folder_has_changed(wish_file, home):
    node, folder = Node(), home / "held"
    for time_s, name, is_held in ((100, "/d1", True), (100, "/d1/bridge", False), (101, "/d2", True)):
        node.call(False)
        node.hold._writer.wait(TIMEOUT_S)
        os.utime(folder, (99, 99))
        node.hold.poll_files()
        wish_file.write([FiledWish(name, str(time_s), ""), FiledWish("/d1", f"{time_s}{name}", "")])
        os.utime(folder, (time_s, time_s) if is_held else (99, 99))
        node.hold.poll_files(only_if_changed=True)
        assert node.hold.is_held == is_held
        node.hold.poll_files()
        assert node.hold.is_held


def test_a_node_looks_for_wishes_each_0_1_s_and_reads_and_signs_each_second():
    looks, signs = [], []
    poll = lambda *, only_if_changed: looks.append(only_if_changed)  # noqa: E731
    node = SimpleNamespace(_wish_looks=0, hold=SimpleNamespace(poll_files=poll), _sign=lambda: signs.append(len(looks)))
    for _ in range(30):
        ProtocolNode._look_for_wishes(node)
    assert (looks.count(False), len(looks), signs) == (3, 30, [10, 20, 30])


def test_a_wish_in_a_file_does_not_outlive_a_release_in_that_run(wish_file):
    wish_file.write([FiledWish("/d1/bridge", "7", "")])
    node = Node()
    node.call(False)
    node.hold.poll_files()
    assert not node.hold.is_held
    status = node.statuses[-1]
    assert (status.wish, status.releases_before_wish, status.releases) == ("7", 0, 1)  # which ends the wish
    wish_file.write([FiledWish("/d1/bridge", "8", "")])
    node.hold.poll_files()
    assert node.hold.is_held


def test_a_helm_is_reported_until_it_ends(monkeypatch):
    node, dropped = Node(), []
    node.hold.when_set(lambda: dropped.append(1))
    assert refusal_of(node.statuses[-1]) == ""
    assert node.hold.take_helm("helm")
    assert "a person is at the helm" in refusal_of(node.statuses[-1])
    count = len(node.statuses)
    assert node.hold.take_helm("helm")
    assert len(node.statuses) == count  # not once per command
    assert len(node.logged) == len(dropped) == 1
    node.hold.report()
    assert node.conditions["helm"] is None, "nobody else commands it"
    monkeypatch.setattr(hold_state, "HELM_ENDS_AFTER_S", -1.0)
    node.hold.report()
    assert (node.statuses[-1].helm, node.statuses[-1].reason) == ("", HELM_ENDED)
    assert "drone-bridge resume" in refusal_of(node.statuses[-1])


def test_a_person_at_the_helm_of_a_held_vehicle_has_it_once_it_is_released():
    node = Node()
    node.call(True)
    assert not node.hold.take_helm("helm")
    assert node.statuses[-1].held
    assert node.statuses[-1].helm == ""
    node.call(False)
    assert not node.statuses[-1].held
    assert node.statuses[-1].helm


def test_a_hold_of_the_node_drops_commands_and_refuses_requests_that_move_it():
    node, dropped = Node(), []
    node.hold.when_set(lambda: dropped.append(1))
    node.hold.check("takeoff")
    for _ in range(2):
        node.hold.hold("a fault")
    assert (node.statuses[-1].reason, dropped) == ("a fault", [1])
    with pytest.raises(ValueError, match="takeoff is refused"):
        node.hold.check("takeoff")


def test_a_hold_and_its_refused_commands_are_logged_once_and_counted():
    node, changes = Node(), []
    node.hold.changed = lambda: changes.append(node.hold.is_held)
    for _ in range(2):
        node.warned.clear()
        changes.clear()
        node.call(True)
        for _ in range(3):
            assert not node.hold.admits("cmd_vel")
            node.hold.report()
        (held, refused) = node.warned
        assert held.startswith("holding: the service hold was called")
        assert refused.startswith("Commands on cmd_vel do not move the vehicle")
        assert node.conditions["hold"] == "holding: the service hold was called"
        assert node.conditions["helm"] is None
        assert not node.logs["hold"]
        node.call(False)
        node.hold.report()
        assert node.conditions["hold"] is None
        assert node.warned == [held, refused]
        assert changes == [True, False]
    assert node.report.counts["commands_refused_on_hold"] == 6
