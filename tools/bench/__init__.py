"""How fast we are: our solvers beside published figures and installed peers, on bundled inputs.

    inputs.py        problems of the sizes that the published figures are of, from the shipped
                     graphs
    placement.py     layers over devices          schedule.py   operators on one chip
    cost.py          products on an array         search.py     the whole space of the paper
    published.py     the published figures        peer.py       peers of the package index, each in
                     its own process
    run.py           all of it as one document, ``phaze.bench/1``

Times are processor seconds of all threads, so that a busy machine changes them little; elapsed
seconds stand beside.
"""
