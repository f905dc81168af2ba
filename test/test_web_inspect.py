# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser, to look into what runs: a status that is true, topics, plots, layers, goals."""

import os
import signal

import browser as chromium
import pytest
from composition import launch
from ports import free_ports
from web_page import address_of

LAMP = "document.querySelector('[data-cell=connection] .lamp').classList.contains('%s')"


@pytest.fixture(scope="module")
def browser():
    chromium.install()
    browser = chromium.Browser()
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def composition():
    options = {"emulate": True, "control": True, "rover_pattern": "circular", "view": True, "view_port": 0}
    with launch("landing.launch.xml", telemetry_port=free_ports(1)[0], **options) as composition:
        composition.address = address_of(composition)
        yield composition


@pytest.fixture
def page(browser, composition):
    browser.open(composition.address)
    browser.wait(LAMP % "ok")
    yield browser
    assert browser.console_errors == []


def test_a_silent_vehicle_is_red_and_cannot_be_steered(page, composition):
    emulator = int(composition.wait_for_line(r"\[launch\] landing-\d+ started \(pid (\d+)\)")[1])
    page.wait("!document.querySelector('.take').disabled")
    page.wait("/server .* s · telemetry_bridge .* s · vehicle .* s/.test(document.body.innerText)")
    page.wait("document.querySelector('[data-cell=doing]').innerText.includes('drone_controller')")
    os.kill(emulator, signal.SIGSTOP)
    try:
        page.wait(LAMP % "error")
        page.wait("document.querySelector('.take').disabled")
        assert "vehicle" in page.text("[data-cell=connection]")
    finally:
        os.kill(emulator, signal.SIGCONT)
    page.wait(LAMP % "ok")
    page.wait("!document.querySelector('.take').disabled")
