# SPDX-License-Identifier: Apache-2.0
"""What web_bridge is made of: the graph and the page in a browser.

`graph` and `calls` put topics and services on a Foxglove server, which listens where nobody else looks; `front_door`
is the address that viewers know, and lets in whom `access` admits. It hands out the page, relays the Foxglove stream
so that a slow viewer loses its own images and nobody else's, and gives the helm to one pilot per vehicle.
"""
