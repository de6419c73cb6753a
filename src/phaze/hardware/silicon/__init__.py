"""Chips as clusters of arrays on silicon: their format, area, power, sustained clock, yield and price."""
