# SPDX-License-Identifier: Apache-2.0
"""Layout checks of the page: no overlapping controls, and STOP is always visible."""

import itertools
import json

import cv2

MIN_SIDE_PX = 44
#: Controls and texts. Nesting is no overlap.
USED = (
    *(".stop", ".banner", ".stick", ".stick-value", ".take", ".refusal", ".speed", ".quick button", ".asking"),
    *(
        ".top nav",
        ".top .tools > *",
        ".overview-button",
        ".sections button",
        ".summary .cell",
        ".panel-head .tools > *",
    ),
    *(".timeline > *", ".card", ".resume-one"),
    *(".hud-value", ".camera-tools > *", ".tabs button"),
)
#: What is never cut off.
TEXTS = (
    *(".take", ".quick button", ".stop", ".resume", ".resume-all", ".resume-one", ".banner-text", ".refusal"),
    *("[data-cell=connection] strong", "[data-cell=connection] .more", ".card-state", ".card-who", ".card-values dd"),
    *(".tabs button", ".panel-head .tools button", ".timeline .time", ".plot .value", ".plot-name", ".keys"),
    *(".speed", "[data-cell=position] strong"),
)
#: Elements that a temporary notice must not cover.
NEVER_COVERED = (".stop", ".banner", ".summary .cell")
CANVASES = (".camera canvas", ".scene-view canvas", ".plot canvas")


def boxes(browser, *selectors):
    """Return (selector, left, top, right, bottom) of visible elements, clipped to their scroll containers."""
    return browser.evaluate(
        f"""{json.dumps(selectors)}.flatMap(selector => [...document.querySelectorAll(selector)]
          .filter(each => each.checkVisibility({{ opacityProperty: true, visibilityProperty: true }}))
          .map(each => {{
            let {{ left, top, right, bottom }} = each.getBoundingClientRect();
            const isFixed = element => getComputedStyle(element).position === 'fixed';
            for (let at = each; at && !isFixed(at); at = at.parentElement) {{
              const parent = at.parentElement;
              if (!parent || parent === document.body || getComputedStyle(parent).overflow === 'visible') continue;
              const cut = parent.getBoundingClientRect();
              left = Math.max(left, cut.left);
              top = Math.max(top, cut.top);
              right = Math.min(right, cut.right);
              bottom = Math.min(bottom, cut.bottom);
            }}
            return [selector, left, top, right, bottom];
          }})
          .filter(([, left, top, right, bottom]) => right - left > 1 && bottom - top > 1))"""
    )


def cut(browser):
    """Return elements that are clipped without scrolling: name and position."""
    return browser.evaluate(
        f"""{json.dumps(USED)}.flatMap(selector => [...document.querySelectorAll(selector)]
          .filter(each => each.checkVisibility({{ opacityProperty: true, visibilityProperty: true }}))
          .flatMap(each => {{
            const {{ left, top, right, bottom }} = each.getBoundingClientRect();
            for (let at = each.parentElement; at && at !== document.body; at = at.parentElement) {{
              const {{ overflowX, overflowY, position }} = getComputedStyle(at);
              if (/auto|scroll/.test(overflowX + overflowY)) return [];
              const around = at.getBoundingClientRect();
              if (overflowX !== 'visible' && (left < around.left - 1 || right > around.right + 1
                  || top < around.top - 1 || bottom > around.bottom + 1))
                return [`${{selector}} ${{[left, top, right, bottom].map(Math.round)}}`];
              if (position === 'fixed') return [];
            }}
            return [];
          }}))"""
    )


def cut_texts(browser):
    """Return texts that overflow their elements."""
    return browser.evaluate(
        f"""{json.dumps(TEXTS)}.flatMap(selector => [...document.querySelectorAll(selector)]
          .filter(each => each.innerText.trim() !== '')
          .filter(each => each.checkVisibility({{ opacityProperty: true, visibilityProperty: true }}))
          .filter(each => {{
            const range = document.createRange();
            range.selectNodeContents(each);
            const text = range.getBoundingClientRect(), around = each.getBoundingClientRect();
            return text.left < around.left - 1 || text.right > around.right + 1
              || text.top < around.top - 1 || text.bottom > around.bottom + 1;
          }})
          .map(each => `${{selector}} '${{each.innerText}}'`))"""
    )


def overlap(one, other):
    """Return whether two boxes overlap by at least a pixel each way, and neither contains the other."""
    across = min(one[3], other[3]) - max(one[1], other[1])
    down = min(one[4], other[4]) - max(one[2], other[2])
    return across > 1 and down > 1 and not contains(one, other) and not contains(other, one)


def contains(outer, inner):
    return outer[1] <= inner[1] and outer[2] <= inner[2] and outer[3] >= inner[3] and outer[4] >= inner[4]


def stop_faults(browser, width, height):
    """Return the defects of each STOP: its size, clipping, or covering elements."""
    found = boxes(browser, ".stop")
    wrong = [] if found else ["there is no STOP"]
    for _, left, top, right, bottom in found:
        if min(right - left, bottom - top) < MIN_SIDE_PX:
            wrong.append(f"STOP is {right - left:.0f} x {bottom - top:.0f} px")
        if left < 0 or top < 0 or right > width or bottom > height:
            wrong.append(f"STOP is not on the screen: {left:.0f} {top:.0f} {right:.0f} {bottom:.0f}")
        at = f"document.elementFromPoint({(left + right) / 2}, {(top + bottom) / 2})"
        if not browser.evaluate(f"Boolean({at}?.closest('.stop'))"):
            wrong.append(f"over STOP lies {browser.evaluate(f'{at}?.className')}")
    return wrong


def faults(browser, width, height, *, steers=True):
    """Return elements that overlap or leave the screen. Pages without steering have no STOP."""
    wrong = stop_faults(browser, width, height) if steers else []
    wrong += [f"{each} is cut off" for each in (*cut(browser), *cut_texts(browser))]
    seen = [box for box in boxes(browser, *USED) if box[2] < height]
    for one, other in itertools.combinations(seen, 2):
        if overlap(one, other):
            wrong.append(f"{one[0]} {list(map(round, one[1:]))} and {other[0]} {list(map(round, other[1:]))} overlap")
    notices = boxes(browser, ".notice")
    for notice, other in itertools.product(notices, boxes(browser, *NEVER_COVERED)):
        if overlap(notice, other) or contains(other, notice):
            wrong.append(f"a notice {list(map(round, notice[1:]))} covers {other[0]} {list(map(round, other[1:]))}")
    for box in seen:
        if box[1] < -1 or box[3] > width + 1 or (box[0] == ".stick" and box[4] > height):
            wrong.append(f"{box[0]} {list(map(round, box[1:]))} is not on the screen")
    if (wide := browser.evaluate("document.documentElement.scrollWidth")) > width:
        wrong.append(f"the page is {wide} px wide")
    return wrong


def blank(browser, width, height, picture):
    """Return the visible canvases with a single colour, and write a screenshot to `picture`."""
    seen = boxes(browser, *CANVASES)  # first: later elements need not be on the screenshot
    browser.screenshot(picture)
    pixels = cv2.imread(str(picture))
    wrong = []
    for selector, *box in seen:
        left, top, right, bottom = (max(0, round(side)) for side in box)
        part = pixels[top : min(bottom, height), left : min(right, width)]
        if part.size and part.std() < 1.0:
            wrong.append(f"{selector} {[left, top, right, bottom]} is blank")
    return wrong
