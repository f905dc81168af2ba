# SPDX-License-Identifier: Apache-2.0
"""Standard files: opens descriptors 0 to 2 if a program was started without them (`2>&-`)."""

import os
import sys


def open_closed_files() -> None:
    """Open closed standard descriptors on /dev/null. To be called before anything else opens a file.

    Otherwise the next socket or file gets the free descriptor, and receives all printed output.
    """
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # gets the lowest free descriptor: this one
        if getattr(sys, name) is None:  # set by Python for a closed descriptor
            setattr(sys, name, open(descriptor, mode, closefd=False))  # noqa: SIM115 - open until the program ends
