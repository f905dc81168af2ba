# SPDX-License-Identifier: Apache-2.0
"""The emulated drone's version.txt by FTP."""

import contextlib
import ftplib

import pytest
from patience import TIMEOUT_S
from ports import free_port

from drone_bridge.ardrone.vehicle.emulator.ftp import VersionServer


@pytest.mark.parametrize("user", ["anonymous", "root"])
def test_version_txt_is_read_by_ftp(user):
    server = VersionServer("127.0.0.1", port := free_port(), "2.4.8")
    with contextlib.closing(server):
        for command in ("RETR version.txt", "RETR /version.txt"):
            found = []
            with ftplib.FTP(timeout=TIMEOUT_S) as client:
                client.connect("127.0.0.1", port)
                client.login(user)
                assert client.size("version.txt") == 6
                client.retrlines(command, found.append)
                with pytest.raises(ftplib.error_perm):
                    client.retrlines("RETR /etc/passwd")
            assert found == ["2.4.8"]
