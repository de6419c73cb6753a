"""Export: plans and searches in the forms that other tools read."""
