"""Pipeline families: how the stages of a replica split a batch of microbatches. Each is one
value (:mod:`phaze.pipeline.families`): its coefficients, what it holds, the order of its passes and
its names."""
