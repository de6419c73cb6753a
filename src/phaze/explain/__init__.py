"""Why an answer is the answer: its neighbours, what more of each resource buys, how wrong constants
may be."""
