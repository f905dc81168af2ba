# SPDX-License-Identifier: Apache-2.0
"""State machines of the GUI's protocol, for its controller and the GUI."""
