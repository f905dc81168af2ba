# SPDX-License-Identifier: Apache-2.0
"""Witnesses of what a command has done: the emulator's end line and trajectory, files, and the page in a browser."""

import contextlib
import csv
import math
import re

import browser as chromium
from patience import wait_until
from rosbags.highlevel import AnyReader
from web_page import address_of

NUMBER = re.compile(r"-?[\d.]+(e-?\d+)?")
PLACE = re.compile(r"ended: .*?(?:at |, x=)[^\d-]*(-?[\d.]+)[^\d-]+(-?[\d.]+)[^\d-]+(-?[\d.]+)")
TOUCHDOWN = r"touchdown on the (\w+) at .*, (good|bad)\b"


def end(text):
    """Return the last place that emulators print at their end: x, y, and z or a heading, m or degrees."""
    return tuple(map(float, PLACE.findall(text)[-1]))


def way(text, start=(0.0, 0.0)):
    """Return how far from the start it ended, m."""
    return math.dist(end(text)[:2], start)


def flight(file):
    """Return the rows of an emulator's trajectory, also of one that is being written."""
    if not file.exists():
        return []
    with file.open() as lines:
        rows = list(csv.DictReader(line for line in lines if line.endswith("\n")))
    return [{name: float(text) for name, text in row.items() if NUMBER.fullmatch(text)} for row in rows]


def wait_for(file, condition, what):
    """Wait until the newest row of a trajectory fulfils a condition."""
    wait_until(lambda: (rows := flight(file)) and condition(rows[-1]), what, period_s=0.2)


def topics(bag):
    """Return the numbers of messages in a bag, by topic, as rosbags reads them."""
    with AnyReader([bag]) as reader:
        counts = {}
        for connection, _, raw in reader.messages():
            reader.deserialize(raw, connection.msgtype)
            counts[connection.topic] = counts.get(connection.topic, 0) + 1
    return counts


@contextlib.contextmanager
def page_of(shell, launch):
    """Open the page that a launch prints, on its machine."""
    chromium.install()
    page = chromium.Browser(shell.inside)
    try:
        page.open(address_of(launch))
        yield page
        assert page.console_errors == []
    finally:
        page.close()


def shows(page, pattern):
    """Wait until the text of the page matches."""
    page.wait(f"/{pattern}/.test(document.body.innerText)")
