# SPDX-License-Identifier: Apache-2.0
"""What web_bridge is made of: the graph and the page in a browser.

`graph` and `calls` announce topics and services on a Foxglove server with an undisclosed loopback address. `front_door`
is the address for viewers, admitted by the rules in `access`: it serves the page, sends viewers what they subscribe to
so that a slow one drops only its own images, and gives the helm to one pilot per vehicle.
"""
