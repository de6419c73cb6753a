"""A checker of certificates that shares no code with what wrote them: the standard library and numpy, nothing else.

It was written from docs/cost.md, schedule.md, placement.md, silicon.md, technology.md and search.md, not from the
solvers, and it imports nothing of phaze (a test forbids it), so this folder runs alone wherever it is copied:

    python -m check RUN

    reading          documents read strictly; digests; the two ways in which a check ends early
    question         which keys documents may have; that graphs and configurations are those that a problem lists
    space, silicon   axes and rules of a space -> its chips, of cores or of clusters, as arrays
    limits           design power and manufacturing cost
    traced, graphs   a traced graph, and how it was fused -> passes of operators
    works            what the cost of an operator depends on
    products, arrays, mappings, vectors      no mapping of a product beats this; all mappings, exactly; vector work
    operators        seconds and joules of operators on chips of cores or of clusters, and on boxes of them
    network          collectives and transfers over the levels of a cluster
    proof, means     every chip of the space, by ever sharper steps; several models together
    fronts           every chip with every memory against the designs of a front
    boxes, larger    the answer of a run against a space that is too large to look at every chip
    claim, verdict   what is claimed, in words; whether it holds

Plans, under any rules, which are values:

    stack, job       the software stack and the job, key by key
    formats          layers in other number formats than bf16, bytes of a parameter
    plan_graph       layers, calls and edges as a plan sees them
    families, plans  pipeline families; bytes of stages, transfers, collectives
    pricing          the price of a plan, and the rules that it must keep
    certified        the plan of a certificate
    printed, events  a plan as a command prints it, figure by figure; the events of its pipeline
    slots            is this a schedule, under any rule

Rules icml24 (published):

    schedules        what no schedule of a pass undercuts
    stages           passes of a stage on many chips at once, the job as values
    placements       what no placement undercuts

Rules cluster (clustered):

    saving, regions, recompute    what a layer keeps between its passes, its parts, what each mode runs again
    passes, queues, layers    seconds of a pass by its schedule rule; one queue beside collectives; layers of a graph
    rows, shapes     what no plan undercuts, on all chips at once
    labels           plans of equal blocks on one chip, exactly
    given, kernels   a chip that is given instead of a space; its measured attention kernels
    planned          a plan on that chip
"""
