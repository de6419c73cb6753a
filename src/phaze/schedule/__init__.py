"""The best order of a layer's operators on one chip, with a proof: problems, bounds, exact schedules, a checker."""
