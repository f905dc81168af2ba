# SPDX-License-Identifier: Apache-2.0
"""Take pictures of the page in each size, light and dark, and compare the boxes of what is on it.

    python docs/make_shots.py shots/                       # or only in some sizes:
    python docs/make_shots.py shots/ 1280x720 390x844

Exits with 1 if anything lies over something else, if STOP is too small or not on the screen, or if a canvas is blank.
"""

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "test" / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "test" / "conformance" / "support"))

import browser as chromium
from composition import Composition, launch
from ports import free_ports
from ros_session import repeating
from web_boxes import blank, faults
from web_page import address_of, grows, take_the_helm
from web_viewer import Pilot

from drone_bridge.ar_drone.cameras import DOWN, FRONT
from drone_bridge.tools.demo.composition import ports_of

SIZES = [(1400, 900), (1366, 650), (1280, 720), (820, 1180), (390, 844), (844, 390)]
SCHEMES = ("light", "dark")
SECTIONS = ("look", "steer", "plots", "more")
VEHICLES = ("testbed", "dronegui", "simulator", "robot", "telemetry")
VEHICLE = "telemetry"
#: The vehicles with cameras.
SEEING = ("testbed", "dronegui", "telemetry")
#: What asks for a second press.
GRAVE = ".emergency, .emergencies button, [data-call$=takeoff], [data-call$=land_on_pad]"
LONG_NAME = "W" * 24
PHONE_WIDTH_PX = 500
BUTTON = f"document.querySelector('[data-call=\"/{VEHICLE}/drone_controller/land_on_pad\"]')"


@contextlib.contextmanager
def steering(address: str, vehicle: str) -> Iterator[None]:
    """Steer a vehicle as another pilot, with released sticks. Leaves the helm at the end."""
    with Pilot(address) as pilot:
        pilot.send(op="hello", name=LONG_NAME)
        pilot.take(f"/{vehicle}/cmd_vel_stamped")
        with repeating(lambda _: pilot.steer()):
            yield


class Shooting:
    """Pictures into one folder, and what is wrong on them."""

    def __init__(self, browser: chromium.Browser, composition: Composition, folder: Path) -> None:
        """Prepare for the page of a composition."""
        started = [composition.wait_for_line(rf"\[launch\] {name}-\d+ started \(pid (\d+)\)") for name in VEHICLES]
        self._emulators = [int(line[1]) for line in started]
        self.found: list[str] = []
        self._browser = browser
        self._address = address_of(composition)
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
            if section in ("", "look"):
                self._fly()
            if section in ("", "steer"):
                self._steer()
            if section:
                self._take(section)
        if width < PHONE_WIDTH_PX:
            browser.click(".sections [data-section=look]")
        self._switch_cameras()
        if browser.evaluate("document.querySelector('.overview-button').checkVisibility()"):
            browser.click(".overview-button")
            browser.wait(f"document.querySelectorAll('[data-card][data-drawn]').length === {len(SEEING)}")
            browser.wait("/Battery/.test(document.querySelector('[data-card=robot]').innerText)")
            browser.wait("![...document.querySelectorAll('.card-state')].some(each => each.innerText === '')")
            self._take("all")
            browser.click(".stop:not(.all)")
            browser.wait(f"/^{len(VEHICLES)} vehicles on hold/.test(document.querySelector('.banner').innerText)")
            self._take("all_held")
            self._resume(".resume-all")
            browser.click(".overview-button")

    def _switch_cameras(self) -> None:
        """Take pictures of what each camera of the AR.Drone sees, in its place and filling the window."""
        browser = self._browser
        self._look_at("dronegui")
        picture = '.camera[data-topic^="/dronegui/"]'
        for camera in (FRONT, DOWN):
            browser.wait(f"document.querySelector('{picture} canvas')?.width === {camera.width}")
            self._take(f"dronegui_{camera.name}")
            browser.evaluate(f"document.querySelector('{picture} .fill').click()")
            browser.wait("document.body.classList.contains('pilot')")
            grows(browser, picture, "frames", 1)
            self._take(f"dronegui_{camera.name}_filling")
            browser.evaluate("document.querySelector('.camera-tools button').click()")
            os.kill(self._emulators[VEHICLES.index("dronegui")], signal.SIGIO)

    def take_states(self, size: tuple[int, int], scheme: str) -> None:
        """Take a picture of each vehicle in each state in which there is more to say."""
        width, height = self._size = size
        self._kind = f"{width}x{height}_{scheme}"
        browser = self._browser
        browser.open(self._address, width=width, height=height, scheme=scheme)
        browser.wait(f"document.querySelectorAll('[data-vehicle]').length === {len(VEHICLES)}")
        if width < PHONE_WIDTH_PX:
            browser.click(".sections [data-section=steer]")
        for vehicle in VEHICLES:
            self._look_at(vehicle)
            self._confirm(vehicle)
            self._refuse(vehicle)
            self._see_somebody_steer(vehicle)
        for pid in self._emulators:
            os.kill(pid, signal.SIGSTOP)
        try:
            for vehicle in VEHICLES:
                self._look_at(vehicle)
                browser.wait("document.querySelector('[data-cell=connection] .lamp').classList.contains('error')")
                self._take(f"{vehicle}_silent")
        finally:
            for pid in self._emulators:
                os.kill(pid, signal.SIGCONT)

    def _look_at(self, vehicle: str) -> None:
        self._browser.evaluate(f"document.querySelector('[data-vehicle={vehicle}]').click()")
        self._browser.wait(f"document.querySelector('[data-vehicle={vehicle}]').ariaPressed === 'true'")
        self._browser.wait("document.querySelector('.notice').hidden")

    def _confirm(self, vehicle: str) -> None:
        browser, before = self._browser, len(self.found)
        for _ in range(5):  # as a busy machine may look too late
            del self.found[before:]
            if not browser.evaluate(f"[...document.querySelectorAll('{GRAVE}')].map(each => each.click()).length"):
                return
            self._take(f"{vehicle}_confirming")
            is_in_time = browser.evaluate("document.querySelector('.armed') !== null")
            browser.wait("document.querySelector('.armed') === null")
            if is_in_time:
                return

    def _refuse(self, vehicle: str) -> None:
        browser = self._browser
        browser.click(".stop:not(.all)")
        browser.wait("/On hold since/.test(document.querySelector('.banner').innerText)")
        self._take(f"{vehicle}_held")
        take_the_helm(browser)
        browser.key("KeyW", down=True)
        browser.wait("document.querySelector('.refusal').checkVisibility()")
        self._take(f"{vehicle}_refused")
        browser.key("KeyW", down=False)
        self._release()
        self._resume(".resume")

    def _release(self) -> None:
        """Click until nobody steers: what comes into the page just then moves the button away."""
        for _ in range(5):
            if self._browser.text(".take") == "Release the helm":
                self._browser.click(".take")
            with contextlib.suppress(AssertionError):
                self._browser.wait("document.querySelector('.who').innerText === 'the helm is free'", 6.0)
                return
        raise AssertionError(f"The helm is not released: {self._browser.text('body')}")

    def _see_somebody_steer(self, vehicle: str) -> None:
        with steering(self._address, vehicle):
            self._browser.wait(f"document.querySelector('.who').innerText === '{LONG_NAME} is steering'")
            self._take(f"{vehicle}_steered")
        self._browser.wait("!document.querySelector('.banner').hidden")
        self._resume(".resume")

    def _resume(self, button: str) -> None:
        self._browser.click(button)
        self._browser.wait("document.querySelector('.banner').hidden")

    def _fly(self) -> None:
        """Have the drone look for its pad, and take a picture when it has found it, high above."""
        browser = self._browser
        doing = "/%s/.test(document.querySelector('[data-cell=doing]').innerText)"
        for _ in range(5):  # as a busy machine may show too late what the drone did
            browser.wait(f"{BUTTON} !== null")
            browser.evaluate(f"for (const _ of [1, 2]) {BUTTON}.click()")
            with contextlib.suppress(AssertionError):
                browser.wait(doing % "searching", timeout_s=10.0)
                browser.wait(doing % "approaching|following|descending", timeout_s=30.0)
                break
        browser.wait("document.querySelector('.notice').hidden")
        self._take("flight")

    def _steer(self) -> None:
        browser = self._browser
        take_the_helm(browser)
        browser.grab(".stick.right", right=18, up=25)
        self._take("helm")
        browser.drop()
        browser.click(".stop")
        browser.wait("/On hold since/.test(document.querySelector('.banner').innerText)")
        self._take("hold")
        self._release()
        self._resume(".resume")

    def _take(self, what: str) -> None:
        name = f"{self._kind}_{what}"
        wrong = faults(self._browser, *self._size) + blank(self._browser, *self._size, self._folder / f"{name}.png")
        for fault in wrong:
            self.found.append(f"{name}: {fault}")
            print(self.found[-1], flush=True)


def main() -> int:
    """Take all pictures, and print what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the pictures go")
    parser.add_argument("sizes", nargs="*", help=f"such as 1280x720 (default: all of {SIZES})")
    options = parser.parse_args()
    sizes = [(int(width), int(height)) for width, _, height in (each.partition("x") for each in options.sizes)] or SIZES
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    chromium.install()
    names = ports_of("all.launch.xml")
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    with (
        launch("all.launch.xml", view=True, view_port=0, control=True, **ports) as composition,
        contextlib.closing(chromium.Browser()) as browser,
    ):
        shooting = Shooting(browser, composition, folder)
        for size in sizes:
            for scheme in SCHEMES:
                shooting.take_all(size, scheme)
            shooting.take_states(size, SCHEMES[0])
    return 1 if shooting.found else 0


if __name__ == "__main__":
    sys.exit(main())
