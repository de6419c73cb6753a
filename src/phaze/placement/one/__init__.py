"""One placement problem and its exact solver, for every setting: what replaces the two beside it."""
