# SPDX-License-Identifier: Apache-2.0
"""Standard files: opens those of descriptors 0 to 2 that a program was started without (`2>&-`)."""

import os
import sys


def open_closed_files() -> None:
    """Open closed standard descriptors on /dev/null. To be called before anything else opens a file.

    Otherwise the next socket or file gets the free number, and whatever is printed goes there.
    """
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # gets the lowest free number: this one
        if getattr(sys, name) is None:  # as Python leaves it then
            setattr(sys, name, open(descriptor, mode, closefd=False))  # noqa: SIM115 - for as long as the program runs
