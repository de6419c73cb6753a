"""Report: what a person sees and takes along."""
