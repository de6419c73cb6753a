"""Launch files read back: what a job that runs today was told, as a run that phaze can price."""
