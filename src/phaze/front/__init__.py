"""Fronts: every design of a study that no other one beats in all of two or three metrics, with a
certificate."""
