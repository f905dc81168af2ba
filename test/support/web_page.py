# SPDX-License-Identifier: Apache-2.0
"""Helpers for tests of the page."""

import contextlib


def address_of(process):
    """Return host and port of the page served by a process or a launch."""
    return process.wait_for_line(r"Open in a browser: http://(\S+)")[1]


def grows(browser, selector, attribute, least=3):
    """Wait until the number in an attribute has grown."""
    element = f"document.querySelector('{selector}')"
    before = browser.evaluate(f"Number({element}?.dataset.{attribute} ?? 0)")
    browser.wait(f"Number({element}?.dataset.{attribute} ?? 0) >= {before + least}")


#: Whether this page has the helm.
IS_AT_HELM = "document.querySelector('.take').innerText === 'Release the helm'"


def take_the_helm(browser):
    """Click until the click succeeds, as a person would: new content may move the button."""
    browser.wait("!document.querySelector('.take').disabled")
    for _ in range(5):
        with contextlib.suppress(AssertionError):
            browser.click(".take")
            browser.wait(IS_AT_HELM, timeout_s=6.0)
            return
    browser.wait(IS_AT_HELM)


def press_twice(browser, selector):
    """Press a button twice: the first press asks for confirmation."""
    browser.wait(f"document.querySelector('{selector}')?.checkVisibility() ?? false")
    browser.evaluate(f"for (const _ of [1, 2]) document.querySelector('{selector}').click()")
