"""Exports of identified servos to simulators, firmware and tables, and the error that each export costs."""
