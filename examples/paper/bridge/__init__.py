"""From the published figures to ours: the faults of the published code put back into the inputs of
a study."""
