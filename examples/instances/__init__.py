"""Certified instances: schedules, placements and joint problems with their optima, for others to
compare and refute."""
