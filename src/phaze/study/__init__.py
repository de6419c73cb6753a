"""Studies: one file that puts models, space, cluster, training, objective and search together."""
