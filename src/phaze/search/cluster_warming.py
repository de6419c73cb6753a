"""What compiles the kernels of rules ``cluster``: a small decoder on a chip, through every one of them."""

import numpy as np

from phaze.cost.parts import chip_arrays
from phaze.evaluate.prices import KnownPrices, LevelPrices
from phaze.evaluate.serial import Machine
from phaze.graph.zoo import load_family
from phaze.hardware.calibration import IDEAL
from phaze.hardware.library import load_chip, load_cluster, load_stack
from phaze.search.cluster_bound import task_bounds
from phaze.search.cluster_shapes import tables_of
from phaze.search.cluster_task import ClusterTask, ClusterTraining, serial_graph, serial_times
from phaze.search.task import ways_of


def warm_all() -> None:
    """Compile and cache them."""
    machine = Machine(load_cluster("paper-flat"), load_stack("ideal"))
    job = ClusterTraining(8, 8, 1.0, "sgd", machine=machine, precision="bf16", zero=0, constants=IDEAL)
    sizes = {"hidden": 32, "layers": 3, "heads": 2, "vocabulary": 64, "sequence": 16}
    graphs = (serial_graph(load_family("gpt", sizes), machine),)
    prices = KnownPrices(LevelPrices(machine.cluster, machine.basis))
    task = ClusterTask("gpt", 1.0, job, graphs, ways_of(graphs, ("best",)), prices=prices)
    times = serial_times(task.graph(0), chip_arrays([load_chip("tpu-v4-paper")]), IDEAL)
    task_bounds(task, [[tables_of(task, task.graph(0), "best", 2**30)]], [times], np.inf, True)
