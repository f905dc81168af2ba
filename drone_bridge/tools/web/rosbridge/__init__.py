# SPDX-License-Identifier: Apache-2.0
"""Rosbridge: topics, services and actions in JSON, by the rosbridge protocol 2.0, for programs without ROS.

It is the WebSocket without a subprotocol on the page's port, by the rules of `access`. What a client may do is in
`allowlist`. Not served: fragments, PNG, CBOR, and services or actions of clients.
"""
