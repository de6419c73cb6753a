"""The texts of ``phaze new``, with places for a goal's values; every key that they leave out has a
default."""

CHIP = """# A chip of your own. See it: phaze chips {file}; plan on it: phaze plan --chip {file} ...
# Goal: at most {area} mm2 and {power} W at {node}; the number of cores was chosen to fill it.
schema = "phaze.chip/1"
name = "{name}"
title = "a chip for {area} mm2 and {power} W at {node}"
clock = "1.5 GHz"                    # any number may be a text with a unit
clock_basis = "derived"              # or sourced, recalled: what the clock rests on
technology = "{node}"                # area, power and cost: phaze technologies
cluster = "{cluster}"                # where it stands unless told otherwise: phaze clusters

[tensor_cores]
count = {cores}
rows = 64                            # multiply-accumulates a cycle and core: rows x columns
columns = 64
buffer = {{ size = "64 KiB" }}

[vector_cores]
count = {cores}
lanes = 64
buffer = {{ size = "32 KiB" }}

[global_buffer]                      # shared by all cores
size = "{global_buffer}"
bandwidth = "4 TB/s"
kind = "scratchpad"                  # or cache

[hbm]
size = "{hbm}"
bandwidth = "{hbm_bandwidth}"

[links]                              # as fast as the cluster's innermost level, one direction, all together
count = {links}
bandwidth = "{link_bandwidth}"
"""

CLUSTERED_CHIP = """# A chip of your own. See it: phaze chips {file}; plan on it: phaze plan --chip {file} ...
# Goal: at most {area} mm2 and {power} W at {node}; the number of clusters was chosen to fill it.
schema = "phaze.chip/2"
name = "{name}"
title = "a chip for {area} mm2 and {power} W at {node}"
clock = "{clock}"                # the most it may run; the power limit sets what it holds
clock_basis = "derived"              # or sourced, recalled: what the clock rests on
technology = "{node}"                # area, power and cost: phaze technologies
cluster = "{cluster}"                # where it stands unless told otherwise: phaze clusters

[clusters]                           # an SM, a compute unit, a TensorCore
count = {cores}
arrays = 4                           # of a cluster, each of rows x columns multiply-accumulates a cycle
rows = 64
columns = 64
lanes = 256                          # of a cluster
operand_buffer = "256 KiB"           # of a cluster
registers = "1 MiB"                  # of a cluster; half of them may hold sums
broadcast = true                     # arrays of a cluster share the operands they read

[global_buffer]                      # shared by all clusters
size = "{global_buffer}"
width = 5120                         # bytes a cycle
fan_out = 16                         # clusters that one read reaches
kind = "cache"                       # or scratchpad

[hbm]
stacks = {stacks}                           # each needs 10.5 mm of die edge
generation = "{generation}"

[links]                              # as fast as the cluster's innermost level, one direction, all together
bandwidth = "{link_bandwidth}"

[silicon]
clusters = [{built}, {cores}]                # built, in use: spares for what breaks

[power]
sustained = "{power} W"              # sets the clock that is held
"""

SPACE = """# A space of chips. Count it: phaze chips --space {file} --count; search it:
# phaze search STUDY --set space={file}
# Goal: at most {area} mm2 and {power} W at {node}.
schema = "phaze.space/1"
name = "{name}"
title = "chips of at most {area} mm2 and {power} W at {node}"
base = "{base}"                      # what the axes do not change is as in this chip, its technology too

[axes]                               # every combination is a chip; a list, or {{ from = 1, to = 4096, times = 2 }}
tensor_cores = [32, 64, 128, 256]
rows = [32, 64, 128]
columns = [32, 64, 128]
vector_cores = [32, 128]
lanes = [64, 128]
global_buffer = ["16 MiB", "32 MiB", "64 MiB"]

[core_buffers]                       # max(least, bytes_per_unit x units of the core)
least = "1 KiB"
bytes_per_unit = 16

[keep]                               # which combinations are chips of the space
most_area = "{area} mm2"
most_power = "{power} W"
"""

CLUSTERED_SPACE = """# A space of chips. Count it: phaze chips --space {file} --count; search it:
# phaze search STUDY --set space={file}
# Goal: at most {area} mm2 and {power} W at {node}.
schema = "phaze.space/2"
name = "{name}"
title = "chips of at most {area} mm2 and {power} W at {node}"
base = "{node}-reticle-base"             # what the axes do not change is as in this chip, its technology too

[axes]                               # every combination is a chip
clusters = [4, 6, 8, 12, 16, 24, 32, 64, 128]
arrays = [2, 4, 8]                   # of a cluster, each of rows x columns multiply-accumulates a cycle
rows = [16, 32, 64, 128]
columns = [32, 64, 128]
lanes = [128, 256, 512, 1024]        # of a cluster
operand_buffer = ["64 KiB"]          # of an array
registers = ["1 MiB", "4 MiB"]       # of a cluster; half of them may hold sums
global_buffer = ["{small_buffer}", "{global_buffer}"]
global_width = [5120]                # bytes a cycle
hbm_stacks = {stacks_axis}               # each needs 10.5 mm of die edge
links = {links_axis}  # one way; the innermost level of the cluster takes them

[keep]                               # which combinations are chips of the space
most_area = "{area} mm2"
least_share = 0.5                    # of that area, at the least
sustained_power = "{power} W"            # lowers the clock, refuses little
"""

STUDY = """# A study: which chip trains the models best. Check it: phaze study check {file};
# search it: phaze search {file}
# Goal: at most {area} mm2 and {power} W at {node}.
schema = "phaze.study/1"
name = "{name}"                      # the run lies in runs/{name}
rules = "{rules}"                    # cluster: levels, software stacks, Adam; icml24: the paper's flat network
models = {models}                   # also file.py:function, a config.json or its folder, a graph file
space = {space}                      # beside this file
{memory}

[training]
cluster = "{cluster}"                # phaze clusters
devices = 64
batch = "1M-tokens"                  # or sequences: 256
# sequence = "4k"                    # else the model's own
# tokens = "2T"                      # days, device hours, USD, kWh and kg CO2e of the whole run
microbatches = [1, 2]

[budget]                             # the most that a chip may have
area = "{area} mm2"
power = "{power} W"
# usd = 2000                         # manufacturing cost of a chip with its HBM

[objective]
kind = "throughput"                  # also throughput_per_watt, _per_usd, _per_kgco2e, energy_delay
baseline = "{base}"                  # the chip that others are compared with

[search]
gap = 0.001                          # how near to the best the proof must come
"""

CLUSTER = """# A cluster of your own. See it: phaze clusters {file}; plan on it:
# phaze plan --cluster {file} ...
schema = "phaze.cluster/1"
name = "{name}"
title = "nodes of eight, joined by a fabric"
devices = 256                        # all there are: the sizes of the levels multiply to it
chip = "{base}"
stack = "megatron-core"              # the usual software: phaze stacks

[[levels]]                           # innermost first; bandwidths are of one device, one direction
name = "node"
kind = "switch"                      # also ring, torus (with shape)
size = 8
bandwidth = "chip"                   # as fast as the chip's own links, or a number such as "450 GB/s"
latency = "3.4 us"                   # of one step

[[levels]]
name = "fabric"
kind = "switch"
size = 32
bandwidth = "50 GB/s"
latency = "9.6 us"
"""

STACK = """# A software stack of your own. See it: phaze stacks {file}; plan with it:
# phaze plan --stack {file} ...
schema = "phaze.stack/1"
name = "{name}"
title = "our fork of Megatron-Core"
base = "megatron-core"               # what is not said here is as there: phaze stacks megatron-core

host_time = "8 us"                   # of the host for every operator that it launches
fusion = "chains"                    # none, chains, elementwise or full: also epilogues of products
attention = "fused"                  # or eager
overlap = {{ reduction = {{ slows = 0.19 }} }}   # of the backward pass, by each second of it beside it
# hides_tensor_collectives = true    # tensor-parallel collectives behind weight gradients
# reserve = 1073741824               # bytes of memory for the runtime and its workspaces
"""

MODEL = '''# A model of your own. See it: phaze graph --model {file}:build; plan it:
# phaze plan --model {file}:build --chip {base} --devices 64 --batch 4M-tokens
"""A plain decoder in PyTorch, to be changed."""

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        b, s, h = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, s, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, s, h))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Decoder(nn.Module):
    def __init__(self, hidden=1024, heads=16, layers=24, vocabulary=32000):
        super().__init__()
        self.table = nn.Embedding(vocabulary, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads) for _ in range(layers))
        self.head = nn.Linear(hidden, vocabulary)

    def forward(self, tokens):
        x = self.table(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def build(microbatch=1, sequence=2048):
    """Module, example inputs, and a loss of its result; nothing is allocated, whatever the sizes."""
    tokens = torch.zeros(microbatch, sequence, dtype=torch.long)
    return Decoder(), tokens, lambda logits: F.cross_entropy(logits.flatten(0, 1), tokens.flatten())
'''
