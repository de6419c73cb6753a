"""What a software stack keeps of a layer between its two passes, as rules on the traced graph."""
