# SPDX-License-Identifier: Apache-2.0
"""What is sent when in the GUI's protocol, by its controller and by the GUI."""
