"""Studies and scripts to start from."""
