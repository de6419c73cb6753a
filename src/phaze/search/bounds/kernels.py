"""What compiles the kernels of the bounds: a small decoder on a chip, through all of them."""

import numpy as np

from phaze.cost.chip_set import chip_set
from phaze.graph.zoo import load_family
from phaze.hardware.calibration import IDEAL
from phaze.hardware.library import load_chip, load_cluster, load_stack
from phaze.placement.job import TrainingJob
from phaze.placement.machine import Machine
from phaze.search.bounds.model_bounds import CHEAP, layer_bounds, model_bounds
from phaze.search.rank_graph import rank_graph
from phaze.search.task import task_of


def warm() -> None:
    """Compile and cache them."""
    sizes = {"hidden": 32, "layers": 3, "heads": 2, "vocabulary": 64, "sequence": 16}
    for stack in ("ideal", "icml24"):
        machine = Machine(load_cluster("paper-flat"), load_stack(stack))
        graph = rank_graph(load_family("gpt", sizes), machine)
        task = task_of("gpt", 1.0, TrainingJob(machine, 8, 8, "sgd"), IDEAL, [graph], ["best"])
        times = layer_bounds(task, graph, chip_set([load_chip("tpu-v4-paper")]), CHEAP)
        model_bounds(task, [times], [2**30], np.inf, True)
        model_bounds(task, [times], [2**30], 1.0, True)
