# SPDX-License-Identifier: Apache-2.0
"""The recordings on the page: their list, a download, and a page that plays one. In a real browser, and without one."""

import contextlib
import http.client
import shutil
import threading

import browser as chromium
import pytest
from ros_session import module_ros
from std_msgs.msg import Bool
from web_viewer import Network, Pilot, web_bridge
from written_bags import write_bag

from drone_bridge.tools.web.bag_list import Recordings

pytestmark = pytest.mark.exhaustive

SECOND_NS = 10**9
BEGIN_NS = 1_700_000_000 * SECOND_NS
NAME = "bag_2026-01-01_12-00-00"

browser = chromium.module_browser()
ros = module_ros()


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Home folder with one recording, and a file beside it."""
    home = tmp_path_factory.mktemp("home")
    bags = home / "drone_bridge" / "bags"
    bags.mkdir(parents=True)
    write_bag(bags / NAME, [("/landed", BEGIN_NS + at * SECOND_NS, Bool(data=bool(at))) for at in range(3)])
    (bags / "notes.txt").write_text("no recording")
    return home


@pytest.fixture(scope="module")
def bags(home):
    return home / "drone_bridge" / "bags"


@pytest.fixture(scope="module")
def server(home):
    with contextlib.ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:  # not for the browser, which would compile messages for this home
            patch.setenv("HOME", str(home))
            process = stack.enter_context(web_bridge())
        yield process


def get(address, path):
    host, _, _ = address.partition("/")
    connection = http.client.HTTPConnection(host)
    connection.request("GET", path)
    response = connection.getresponse()
    return response.status, response.read()


def test_recordings_are_listed_with_the_newest_first(bags, tmp_path, monkeypatch):
    monkeypatch.setenv("DRONE_BRIDGE_WIRE", str(tmp_path))
    assert Recordings("127.0.0.1", tmp_path / "nowhere").document()["recordings"] == []
    listed = Recordings("127.0.0.1", bags).document()
    file = next(bags.glob(f"{NAME}/*.mcap"))
    assert listed["folder"] == str(bags)
    assert [(each["name"], each["bytes"]) for each in listed["recordings"]] == [(NAME, file.stat().st_size)]
    for name in ("notes.txt", "..", f"../bags/{NAME}", ""):
        assert Recordings("127.0.0.1", bags).file(name) is None


def test_saved_minutes_of_the_wire_are_listed(bags, tmp_path, monkeypatch):
    monkeypatch.setenv("DRONE_BRIDGE_WIRE", str(tmp_path))
    (tmp_path / "robot_bridge-1.mcap").write_bytes(b"wire")
    listed = Recordings("127.0.0.1", bags).document()
    assert listed["folder"] == f"{bags} and {tmp_path}"
    assert {each["name"]: each["is_wire"] for each in listed["recordings"]} == {"robot_bridge-1": True, NAME: False}


def test_a_recording_is_downloaded_as_it_is(server, bags):
    file = next(bags.glob(f"{NAME}/*.mcap"))
    assert get(server.address, f"/recordings/{NAME}") == (200, file.read_bytes())
    for other in ("notes.txt", "..%2Fnotes.txt", ""):
        assert get(server.address, f"/recordings/{other}")[0] == 404


def test_a_report_is_a_page_that_begins_with_events_or_says_why_there_is_none(server, bags):
    status, page = get(server.address, f"/reports/{NAME}")
    assert status == 200
    assert b"<h2>Events</h2>" in page
    assert get(server.address, "/reports/notes.txt")[0] == 404
    broken = bags / "broken"
    broken.mkdir()
    (broken / "broken.mcap").write_text("not an mcap file")
    recordings = Recordings("127.0.0.1", bags)
    try:
        assert "mcap" in recordings.report("broken").read_text()
    finally:
        recordings.close()
        shutil.rmtree(broken)


def test_a_viewer_who_may_not_steer_gets_no_recording():
    with web_bridge(host="0.0.0.0") as server, Network(server.address, forwarded_for="192.0.2.9") as network:
        _, _, query = network.address.partition("?")
        assert get(network.address, f"/recordings/{NAME}?{query}")[0] == 403
        with Pilot(network.address) as pilot:
            pilot.send(op="watch", recording=NAME)
            pilot.wait_for(lambda: pilot.refusals, "a refusal")


def test_the_page_lists_recordings_and_plays_one(browser, server, bags):
    browser.open(server.address, before="window.open = (link) => { window.opened = link; };")
    browser.click("[aria-controls=details-bags]")
    browser.wait(f"document.querySelector('[data-recording=\"{NAME}\"] a[download]') !== null")
    assert str(bags) in browser.text("#details-bags .hint")
    browser.wait(f"document.querySelector('[data-recording=\"{NAME}\"] a.report').target === '_blank'")
    browser.click(f'[data-recording="{NAME}"] .watch')
    browser.wait("document.querySelector('.playing') !== null")
    link = browser.evaluate("window.opened")
    browser.open(link.removeprefix("http://"))
    browser.wait("document.querySelector('#timeline').dataset.at !== undefined")


def test_a_page_of_a_recording_says_that_another_one_is_played(browser, server):
    with Pilot(server.address) as pilot:  # follows the test before, whose page is still open
        pilot.send(op="watch", recording=NAME)
        browser.wait("/not played any more/.test(document.querySelector('[data-cell=connection]').innerText)")


def test_a_recording_that_cannot_be_played_says_why(tmp_path):
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "broken.mcap").write_text("not an mcap file")
    told, answers = threading.Event(), []
    recordings = Recordings("127.0.0.1", tmp_path)
    try:
        for name in ("broken", "missing"):
            told.clear()
            recordings.play(name, lambda *answer: (answers.append(answer), told.set()))
            assert told.wait(60)
    finally:
        recordings.close()
    assert [link for link, _ in answers] == ["", ""]
    assert all(name in reason for name, (_, reason) in zip(("broken", "missing"), answers, strict=True))
