"""Helpers that tests of several folders share: clips, pictures, commands, faults, tolerances, golden scores."""
