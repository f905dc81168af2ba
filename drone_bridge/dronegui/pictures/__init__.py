# SPDX-License-Identifier: Apache-2.0
"""Video between the GUI and its controllers: one packet of the drone per datagram, see the kit `pictures`."""
