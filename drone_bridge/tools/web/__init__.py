# SPDX-License-Identifier: Apache-2.0
"""Parts of web_bridge: the graph and the page in a browser.

`graph` and `calls` announce topics and services on a Foxglove server with an undisclosed loopback address. `gateway`
is the address for viewers, admitted by the rules in `access`: it serves the page, sends viewers their subscriptions so
that a slow viewer drops only its own images, and gives the helm to one pilot per vehicle.
"""
