# SPDX-License-Identifier: Apache-2.0
"""A control GUI with a drone behind it: the receiving side of the dronegui protocol."""
