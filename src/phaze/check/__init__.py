"""A checker of certificates that shares no code with what wrote them: the standard library and
numpy, nothing else.

It was written from docs/cost.md, schedule.md, placement.md, silicon.md, technology.md and
search.md, not from the solvers, and it imports nothing of phaze (a test forbids it), so this folder
runs alone wherever it is copied:

    python -m check RUN

    reading          documents read strictly; digests; the two ways in which a check ends early
    run_documents    the documents of a run, and how they are checked
    question         which keys documents may have; that graphs and configurations are those that a
                     problem lists
    claim, verdict   what is claimed, in words; whether it holds

Chips, of cores or of clusters, as arrays:

    space, limits    axes and rules of a space -> its chips
    fixed_chip       a chip that is given instead of a space
    technology, silicon, energy    what chips are made in; area, power, the clock held; joules, and
                                   what they count
    boxes            spaces too large to look at every chip

Operators, and passes of them:

    traced, graphs   a traced graph, and how it was fused -> passes of operators
    formats, softmaxes, saving, regions, recompute    layers in other number formats; what they keep
                                                      and run again
    works            what the cost of an operator depends on
    products, arrays, mappings, vectors, kernels      no mapping of a product beats this; all
                                                      mappings, exactly
    operators        seconds and joules of operators on chips, and on boxes of them
    network          collectives and transfers over the levels of a cluster
    passes, pass_units, queues, schedules, core_paths    seconds of a pass by its schedule rule;
                                                         what no schedule undercuts
    slots            is this a schedule, under any rule
    layers, layer_costs    the layers of a graph as a stack runs them; their seconds and joules

Plans, under any rules, which are values:

    stack, job       the software stack and the job, key by key
    plan_graph       layers, calls and edges as a plan sees them
    families, plans, stages    pipeline families; bytes of stages, transfers, collectives; edges
                               that arrive
    pricing          the price of a plan, and the rules that it must keep
    certified        the plan of a certificate
    printed, events  a plan as a command prints it, figure by figure; the events of its pipeline

What no plan undercuts:

    model            a model of a problem: its answer exactly, and its bounds in ever sharper steps
    plan_classes, row_costs, plan_bounds    plans that differ in replicas alone; what none
                                            undercuts, on all chips
    closed_sets, completions, exact_cuts    stages of any layer graph; every plan, exactly
    means, space_proof       several models together; every chip of a space
    plan_proof, restricted   a plan on the one chip that is given
    fronts, front_boxes      every chip with every memory against the designs of a front
"""
