# SPDX-License-Identifier: Apache-2.0
"""Which addresses a listener accepts."""

import pytest

from drone_bridge.wire.addresses import AllowedPeers


@pytest.mark.parametrize(
    ("names", "host", "expected"),
    [
        (["any"], "203.0.113.9", True),
        (["10.0.7.1"], "10.0.7.1", True),
        (["10.0.7.1"], "10.0.7.2", False),
        (["192.0.2.1", "10.0.0.0/8"], "10.9.8.7", True),
        (["10.0.0.0/8"], "::ffff:10.9.8.7", True),  # as a socket for both versions shows it
        (["fe80::/64"], "fe80::1%eth0", True),
        (["fe80::/64"], "10.9.8.7", False),
    ],
)
def test_addresses_and_networks_are_matched(names, host, expected):
    assert AllowedPeers(names).allows(host) is expected


@pytest.mark.parametrize("name", ["", "localhost", "10.0.0.1/8", "10.0.0", "any "])
def test_an_invalid_address_is_refused_with_a_sentence(name):
    with pytest.raises(ValueError, match="an address, or a network"):
        AllowedPeers([name])


def test_nobody_allowed_is_refused_with_what_to_write():
    with pytest.raises(ValueError, match="'any', addresses or networks"):
        AllowedPeers([])
