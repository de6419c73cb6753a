"""Sweeps: the certified best along a range of one value of a study."""
