# SPDX-License-Identifier: Apache-2.0
"""Take pictures of the page in each size, light and dark, and compare the boxes of what is on it.

    python docs/make_shots.py shots/

Exits with 1 if anything lies over something else, if STOP is too small or not on the screen, or if a canvas is blank.
"""

import argparse
import contextlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "test" / "support"))

import browser as chromium
from composition import launch
from ports import free_ports
from web_boxes import blank, faults
from web_page import address_of, grows, take_the_helm

PORTS = ("testbed_port", "dronegui_port", "simulator_port", "robot_port", "telemetry_port", "discovery_port")
SIZES = [(1400, 900), (820, 1180), (390, 844), (844, 390)]
SCHEMES = ("light", "dark")
SECTIONS = ("look", "steer", "plots", "more")
VEHICLE = "landing"
PHONE_WIDTH_PX = 500


class Shooting:
    """Pictures into one folder, and what is wrong on them."""

    def __init__(self, browser: chromium.Browser, address: str, folder: Path) -> None:
        """Prepare for the page at an address."""
        self.found: list[str] = []
        self._browser = browser
        self._address = address
        self._folder = folder
        self._size = (0, 0)
        self._kind = ""

    def take_all(self, size: tuple[int, int], scheme: str) -> None:
        """Take a picture of each composition in one size."""
        width, height = self._size = size
        self._kind = f"{width}x{height}_{scheme}"
        browser = self._browser
        browser.open(self._address, width=width, height=height, scheme=scheme)
        browser.wait("document.querySelectorAll('[data-vehicle]').length === 5")
        browser.evaluate(f"document.querySelector('[data-vehicle={VEHICLE}]').click()")
        grows(browser, f'.camera[data-topic^="/{VEHICLE}/"]', "frames", 3)
        for section in SECTIONS if width < PHONE_WIDTH_PX else ("",):
            if section:
                browser.click(f".sections [data-section={section}]")
            if section in ("", "steer"):
                self._steer()
            else:
                self._take(section)
        if browser.evaluate("document.querySelector('.overview-button').checkVisibility()"):
            browser.click(".overview-button")
            browser.wait(f"Number(document.querySelector('[data-card={VEHICLE}]')?.dataset.drawn) > 0")
            self._take("all")

    def _steer(self) -> None:
        browser = self._browser
        take_the_helm(browser)
        browser.grab(".stick.right", right=18, up=25)
        self._take("helm")
        browser.drop()
        browser.click(".stop")
        browser.wait("/Holding since/.test(document.querySelector('.banner').innerText)")
        self._take("hold")
        browser.click(".take")
        browser.click(".resume")
        browser.wait("document.querySelector('.banner').hidden")

    def _take(self, what: str) -> None:
        name = f"{self._kind}_{what}"
        wrong = blank(self._browser, *self._size, self._folder / f"{name}.png") + faults(self._browser, *self._size)
        self.found += [f"{name}: {fault}" for fault in wrong]


def main() -> int:
    """Take all pictures, and print what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the pictures go")
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    chromium.install()
    ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
    with (
        launch("all.launch.xml", view=True, view_port=0, control=True, **ports) as composition,
        contextlib.closing(chromium.Browser()) as browser,
    ):
        shooting = Shooting(browser, address_of(composition), folder)
        for size in SIZES:
            for scheme in SCHEMES:
                shooting.take_all(size, scheme)
    print(*shooting.found, sep="\n")
    return 1 if shooting.found else 0


if __name__ == "__main__":
    sys.exit(main())
