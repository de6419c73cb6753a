"""Where seeking the chip and the placement together pays: a map of certified answers."""
