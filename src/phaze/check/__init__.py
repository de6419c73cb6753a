"""A checker of certificates that shares no code with what wrote them: the standard library and numpy, nothing else.

It was written from docs/cost.md, schedule.md, placement.md, technology.md and search.md, not from the solvers, and it
imports nothing of phaze (a test forbids it), so this folder runs alone wherever it is copied:

    python -m check RUN

    reading     documents read strictly; digests; the two ways in which a check ends early
    space       axes and rules of a space -> its chips, as arrays
    graphs      a traced graph and how it was fused -> passes of operators
    limits      design power and manufacturing cost
    works       what the cost of an operator depends on
    products    a matrix product on a part of a chip: no mapping beats the roofline; all mappings, exactly
    vectors     vector work on a part of a chip
    operators   operators on chips: seconds on one core and spread
    schedules   is this a schedule; what no schedule of a pass undercuts
    stages      layers and stages of a graph, the bytes they hold, the price of a plan
    placements  what no placement undercuts
    means       several models together
    proof       the answer, and every chip of the space
    claim       what is claimed, in words
"""
