"""Costs of operators on chips of clusters: arrays that share operands behind one port."""
