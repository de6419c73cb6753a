"""Two steps of a small decoder on one of two processes that sum gradients by gloo, profiled: rank,
world, folder."""

import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch._C._distributed_c10d import FileStore
from torch.profiler import ProfilerActivity, profile, schedule

HIDDEN, HEADS, LAYERS, VOCABULARY, SEQUENCE, MICROBATCH = 256, 4, 2, 1024, 128, 4


class Block(nn.Module):
    """A decoder block with four times as wide an MLP."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.qkv, self.out = nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.up, self.down = nn.Linear(HIDDEN, 4 * HIDDEN), nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.first(x)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, HIDDEN))
        wide: torch.Tensor = self.down(F.gelu(self.up(self.second(x))))
        return x + wide


def main() -> None:
    rank, world, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group(
        "gloo", store=FileStore(str(folder / "store"), world), rank=rank, world_size=world
    )
    net = nn.Sequential(
        nn.Embedding(VOCABULARY, HIDDEN),
        *(Block() for _ in range(LAYERS)),
        nn.Linear(HIDDEN, VOCABULARY),
    )
    optimizer = torch.optim.Adam(net.parameters())
    plan = schedule(wait=0, warmup=1, active=2, repeat=1)
    with profile(activities=[ProfilerActivity.CPU], schedule=plan, record_shapes=True) as profiler:
        for _ in range(3):
            ids = torch.randint(0, VOCABULARY, (MICROBATCH, SEQUENCE + 1))
            loss = F.cross_entropy(net(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
            torch.autograd.backward(loss)
            for parameter in net.parameters():
                dist.all_reduce(parameter.grad)
            optimizer.step()
            optimizer.zero_grad()
            profiler.step()
    profiler.export_chrome_trace(str(folder / f"rank{rank}.json"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
