# SPDX-License-Identifier: Apache-2.0
"""Take the guide's pictures of a first flight: an emulated AR.Drone on the page, from its start to STOP."""

import argparse
import contextlib
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "test" / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "test" / "conformance" / "support"))

import browser as chromium
from composition import launch
from ports import free_ports
from web_page import address_of, grows, press_twice, take_the_helm

from drone_bridge.tools.demo.composition import ports_of

WIDTH, HEIGHT = 1200, 740
#: How long the drone climbs, and how long the stick is held, s.
CLIMB_S, STICK_S = 5.0, 3.0


def main() -> int:
    """Fly, and take a picture of each step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the pictures go")
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    chromium.install()
    names = [name for name in ports_of("ardrone.launch.xml") if name != "programs_port"]
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    with (
        launch("ardrone.launch.xml", emulate=True, view=True, view_port=0, **ports) as composition,
        contextlib.closing(chromium.Browser()) as browser,
    ):
        browser.open(address_of(composition), width=WIDTH, height=HEIGHT, scheme="light")
        browser.wait("document.querySelector('[data-cell=connection] .lamp')?.classList.contains('ok')")
        grows(browser, ".camera", "frames")
        browser.screenshot(folder / "1_connected.png")
        take_the_helm(browser)
        browser.screenshot(folder / "2_helm.png")
        press_twice(browser, "[data-call$=takeoff]")
        time.sleep(CLIMB_S)
        browser.screenshot(folder / "3_flying.png")
        browser.grab(".stick.right", right=18, up=25)
        time.sleep(STICK_S)
        browser.screenshot(folder / "4_steered.png")
        browser.drop()
        browser.click(".stop:not(.all)")
        browser.wait("/On hold since/.test(document.querySelector('.banner').innerText)")
        browser.screenshot(folder / "5_stopped.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
