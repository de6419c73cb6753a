"""Hardware: chips, clusters, software stacks, and what silicon, power and ownership cost."""
