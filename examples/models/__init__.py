"""Models to plan: code of one's own, and configurations of transformers by their published
sizes."""
