# SPDX-License-Identifier: Apache-2.0
"""The AR.Drone's family: what the protocols `ardrone` and `dronegui` share. Nothing else imports it."""
