"""Models as layers of operators: what one training step computes, reads, writes, keeps and
communicates."""
