"""Report: what a person sees and exports."""
