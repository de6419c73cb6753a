"""What an operator takes on a chip: time, energy, traffic and what bounds it."""
