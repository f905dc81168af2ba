# SPDX-License-Identifier: Apache-2.0
"""Hold without ROS: where it is kept, who finds it again, what it says where it can't be kept, and what is too old."""

import platform
from types import SimpleNamespace

import pytest
from std_srvs.srv import SetBool

from drone_bridge.ros import hold_file
from drone_bridge.ros.hold import Hold
from drone_bridge.ros.hold_file import SCOPE_VARIABLE, HoldFile


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ROS_HOME", str(tmp_path))
    monkeypatch.delenv(SCOPE_VARIABLE, raising=False)
    boots(monkeypatch, "0ff1ce")
    return tmp_path


def boots(monkeypatch, name):
    monkeypatch.setattr(hold_file, "boot_id", lambda: name)


def kept():
    """Why the vehicle of a node that starts now was held."""
    return HoldFile(7, "/d1/bridge").read()


def test_a_node_that_comes_back_finds_what_was_kept_and_other_nodes_do_not():
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


def test_hold_ends_with_the_boot_whose_files_the_host_removes_from_a_home_that_it_shares(monkeypatch):
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


def test_the_id_of_a_boot_stays_the_same_and_is_a_name_of_a_file():
    assert hold_file.boot_id() == hold_file.boot_id()
    assert "/" not in hold_file.boot_id()


def test_what_is_kept_in_one_scope_is_found_in_that_alone(monkeypatch):
    monkeypatch.setenv(SCOPE_VARIABLE, "launch/1")
    HoldFile(7, "/d1/bridge").write("an emulated vehicle")
    assert kept() == "an emulated vehicle"
    for other in ("launch/2", ""):
        monkeypatch.setenv(SCOPE_VARIABLE, other)
        assert not kept()


# What hold says of it.


class Node:
    """What Hold needs of its node."""

    context = SimpleNamespace(get_domain_id=lambda: 7)
    has_just_stood_still = False

    def __init__(self):
        self.warned, self.serve, self.published = [], None, []
        do_nothing = lambda *_: None  # noqa: E731
        self.reports = SimpleNamespace(update_condition=do_nothing, end_ongoing=do_nothing)
        self.hold = Hold(self, "held")

    def get_fully_qualified_name(self):
        return "/d1/bridge"

    def get_logger(self):
        return SimpleNamespace(warning=self.warned.append)

    def create_publisher(self, *_, **__):
        return SimpleNamespace(publish=lambda message: self.published.append(message.data))

    def create_service(self, kind, name, serve):
        self.serve = serve

    def check_age(self, what):
        if self.has_just_stood_still:
            raise ValueError(f"{what} is too old")

    def call(self, data, is_followed=True):
        answer = self.serve(SetBool.Request(data=data), SetBool.Response())
        assert answer.success == is_followed
        return answer.message


def test_the_answer_names_the_file(home):
    node = Node()
    assert str(home / "held" / "0ff1ce.7.d1.bridge") in node.call(True)
    assert Node().hold.is_held
    assert node.call(False) == "The vehicle follows commands."
    assert not Node().hold.is_held


def test_it_is_written_on_changes_alone(home):
    node = Node()
    node.call(True)
    node.hold._file.remove()
    node.call(True)
    assert list((home / "held").iterdir()) == []


def test_where_it_can_t_be_kept_the_answer_says_so_and_the_vehicle_is_held(home):
    (home / "held").write_text("no folder")
    node = Node()
    assert len(node.warned) == 1  # that it can't be read
    answer = node.call(True)
    assert "will not know that its vehicle was held" in answer
    assert str(home / "held") in answer
    assert node.hold.is_held
    assert node.published == [False, True]
    (home / "held").unlink()
    assert "will not know" not in node.call(True)  # asked again it is tried again
    assert Node().hold.is_held


def test_where_the_file_can_t_be_removed_the_answer_says_so_and_the_vehicle_follows(home):
    node = Node()
    node.call(True)
    file = node.hold._file.path
    file.unlink()
    file.mkdir()  # which unlink refuses
    answer = node.call(False)
    assert "it will hold again" in answer
    assert not node.hold.is_held


def test_what_was_asked_for_before_a_stall_holds_and_does_not_release():
    node = Node()
    node.has_just_stood_still = True
    node.call(True)
    assert node.hold.is_held
    assert node.call(False, is_followed=False) == "hold with false is too old"
    assert node.hold.is_held
    node.has_just_stood_still = False
    node.call(False)
    assert not node.hold.is_held
