"""A user's own module: what becomes of it, and what is said when it cannot be traced."""

import textwrap
from pathlib import Path

import pytest

pytest.importorskip("torch")

from phaze.errors import InputError
from phaze.graph import opset
from phaze.graph.ir import Model, OperatorGraph
from phaze.graph.torch.source import source_of
from phaze.graph.torch.trace import trace_model, unknown_operators

MIXER = """
class Mixer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))
"""


def written(folder: Path, body: str) -> str:
    """A file with ``body`` after the usual imports; the text that names its function ``make``."""
    path = folder / "given.py"
    path.write_text("import torch\nfrom torch import nn\n" + MIXER + textwrap.dedent(body))
    return f"{path}:make"


def traced(folder: Path, body: str, microbatch: int = 2, tensor: int = 1) -> Model:
    return trace_model(source_of(written(folder, body)), microbatch=microbatch, tensor=tensor)


def refused(folder: Path, body: str, microbatch: int = 2) -> str:
    with pytest.raises(InputError) as fault:
        traced(folder, body, microbatch)
    text = str(fault.value)
    assert "\n" not in text and text.endswith(".")
    return text


def flops(graph: OperatorGraph) -> int:
    return sum(opset.flops(operator) for operator in graph.operators)


UNET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList(Mixer(16) for _ in range(3))
        self.up = nn.ModuleList(Mixer(32) for _ in range(3))
        self.join = nn.Linear(32, 16)
    def forward(self, x):
        kept = []
        for block in self.down:
            x = block(x)
            kept.append(x)
        early = torch.tanh(x)
        for block in self.up:
            x = self.join(block(torch.cat((x, kept.pop()), -1)))
        return (x * early).sum()
def make():
    return Net(), torch.randn(2, 8, 16)
"""


def test_skips_around_blocks_become_edges(tmp_path: Path) -> None:
    model = traced(tmp_path, UNET)
    names = [call.module for call in model.calls]
    blocks = [
        model.count(i) for i, layer in enumerate(model.layers) if layer.name[:3] in ("dow", "up.")
    ]
    assert blocks == [1, 2, 3]  # the first needs no gradient of its input
    edges = {(names[edge.source], names[edge.target]) for edge in model.edges}
    assert ("down.0", next(t for s, t in edges if s == "up.1")) in edges
    assert all(edge.source < edge.target for edge in model.edges)
    assert (
        model.parameters
        == 3 * (2 * 16 + 8 * 16 * 16 + 80) + 3 * (2 * 32 + 8 * 32 * 32 + 160) + 33 * 16
    )


def test_a_skip_between_parts_is_differentiated_once(tmp_path: Path) -> None:
    model = traced(tmp_path, UNET)
    kinds = [op.kind for layer in model.layers for op in layer.backward.operators]
    assert kinds.count("activation_backward") == 1


def test_a_module_without_repeats_is_one_layer(tmp_path: Path) -> None:
    body = """
    def make():
        net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
        return net, torch.randn(2, 8), lambda y: y.sum()
    """
    model = traced(tmp_path, body)
    assert [layer.name for layer in model.layers] == ["model"]
    products = [
        sum(op.kind == "product" for op in g.operators)
        for g in (model.layers[0].forward, model.layers[0].backward)
    ]
    assert products == [3, 5]


def test_a_list_called_three_times_has_three_records_and_its_parameters_once(
    tmp_path: Path,
) -> None:
    body = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(Mixer(16) for _ in range(2))
        def forward(self, x):
            for _ in range(3):
                for block in self.blocks:
                    x = block(x)
            return x
    def make():
        return Net(), (torch.randn(2, 8, 16),), lambda y: y.mean()
    """
    model = traced(tmp_path, body)
    blocks = [
        model.count(i) for i, layer in enumerate(model.layers) if layer.name.startswith("blocks")
    ]
    assert blocks == [1, 5]  # the first needs no gradient of its input
    assert model.parameters == 2 * (2 * 16 + 8 * 16 * 16 + 80)
    assert {len(tie.calls) for tie in model.ties} == {3}


def test_convolutions_are_products(tmp_path: Path) -> None:
    body = """
    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        def forward(self, x):
            return torch.relu(self.norm(self.conv(x)) + x)
    def make():
        blocks = nn.Sequential(*(Block(8) for _ in range(4)))
        net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), blocks, nn.Flatten(), nn.Linear(8 * 36, 5))
        return net, torch.randn(2, 3, 6, 6), lambda y: y.mean()
    """
    model = traced(tmp_path, body)
    block = next(i for i, layer in enumerate(model.layers) if model.count(i) == 4)
    product = next(op for op in model.layers[block].forward.operators if op.kind == "product")
    assert dict(product.sizes) == {"batch": 1, "m": 2 * 36, "n": 8, "k": 72}
    assert flops(model.layers[block].backward) == 2 * flops(model.layers[block].forward)
    first = model.layers[0]
    assert flops(first.backward) == flops(first.forward)


def test_a_plan_of_the_user_splits_the_user_s_module(tmp_path: Path) -> None:
    body = """
    def make():
        net = nn.Sequential(nn.Sequential(*(Mixer(16) for _ in range(3))))
        return net, torch.randn(2, 8, 16), lambda y: y.sum(), {"0.*.up": "colwise", "0.*.down": "rowwise"}
    """
    one, two = traced(tmp_path, body), traced(tmp_path, body, tensor=2)
    assert 2 * flops(two.layers[0].forward) == flops(one.layers[0].forward)
    assert [op.kind for op in two.layers[0].forward.operators if op.core == "network"] == [
        "all_reduce"
    ]


def test_without_a_plan_only_width_one_is_possible(tmp_path: Path) -> None:
    body = "def make():\n    return Mixer(16), torch.randn(2, 8, 16), lambda y: y.sum()\n"
    with pytest.raises(InputError, match="there is no tensor-parallel plan"):
        traced(tmp_path, body, tensor=2)


def test_the_microbatch_replaces_the_batch_of_the_example(tmp_path: Path) -> None:
    body = "def make():\n    return Mixer(16), torch.randn(2, 8, 16), lambda y: y.sum()\n"
    one, four = traced(tmp_path, body, microbatch=1), traced(tmp_path, body, microbatch=4)
    assert flops(four.layers[0].forward) == 4 * flops(one.layers[0].forward)


def test_rates_from_a_series_and_truncated_weights_do_not_stop_a_build(tmp_path: Path) -> None:
    body = """
    class Block(Mixer):
        def __init__(self, rate):
            super().__init__(16)
            nn.init.trunc_normal_(self.up.weight, std=0.02)
            self.drop = nn.Dropout(rate)
        def forward(self, x):
            return self.drop(super().forward(x))
    def make():
        rates = [rate.item() for rate in torch.linspace(0, 0.3, 4)]
        assert rates[0] == 0 and rates[-1] > 0.29
        print("built")
        return nn.Sequential(nn.Linear(16, 16), nn.Sequential(*(Block(r) for r in rates))), torch.randn(2, 16)
    """
    model = traced(tmp_path, body)
    assert (
        sorted(op.kind for layer in model.layers for op in layer.forward.operators).count("dropout")
        == 3
    )


def test_a_table_of_positions_that_a_module_keeps_costs_no_more_than_one_that_it_makes(
    tmp_path: Path,
) -> None:
    body = """
    class Net(Mixer):
        def __init__(self):
            super().__init__(16)
            self.register_buffer("places", torch.arange(32))
            self.table = nn.Embedding(32, 16)
        def forward(self, x):
            return super().forward(x + self.table(self.places[: x.shape[1]]))
    def make():
        return Net(), torch.randn(2, 8, 16), lambda y: y.sum()
    """
    kinds = [op.kind for op in traced(tmp_path, body).layers[0].forward.operators]
    assert kinds[:2] == ["embedding", "add"]


def test_a_large_module_takes_no_memory(tmp_path: Path) -> None:
    body = "def make():\n    return nn.Linear(10**6, 10**6), torch.randn(2, 10**6)\n"
    assert traced(tmp_path, body).parameters == 10**12 + 10**6


def test_copied_and_converted_modules_are_what_they_say(tmp_path: Path) -> None:
    body = """
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.body, self.head = nn.Embedding(9, 16), Mixer(16), nn.Linear(16, 9, bias=False)
            self.head.weight = self.table.weight
        def forward(self, x):
            return self.head(self.body(self.table(x))).sum()
    def make():
        layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
        return nn.TransformerEncoder(layer, 3), torch.randn(2, 8, 16), lambda y: y.sum()
    def wide():
        return Tied().float(), torch.zeros(2, 8, dtype=torch.long)
    """
    model = traced(tmp_path, body)
    one = 16 * 48 + 48 + 17 * 16 + 17 * 32 + 33 * 16 + 4 * 16
    assert (model.parameters, [model.count(i) for i in range(2)]) == (3 * one, [1, 2])
    assert [
        sum(op.kind == "product" for op in g.operators)
        for g in (model.layers[1].forward, model.layers[1].backward)
    ] == [6, 12]
    wide = trace_model(source_of(written(tmp_path, body).replace(":make", ":wide")), microbatch=2)
    assert wide.parameters == 9 * 16 + 2 * 16 + 8 * 16 * 16 + 80
    assert {p.element_bytes for layer in wide.layers for p in layer.parameters} == {4}


def test_a_block_that_its_own_code_recomputes_is_run_again_in_backward(tmp_path: Path) -> None:
    body = """
    from torch.utils.checkpoint import checkpoint
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.blocks = nn.Linear(16, 16), nn.ModuleList(Mixer(16) for _ in range(3))
        def forward(self, x):
            x = self.first(x)
            for block in self.blocks:
                x = checkpoint(block, x, use_reentrant=False)
            return x.sum()
    def make():
        return Net(), torch.randn(2, 8, 16)
    """
    model = traced(tmp_path, body)
    assert [
        model.count(i) for i, layer in enumerate(model.layers) if layer.name.startswith("blocks")
    ] == [3]
    assert model.parameters == 3 * (2 * 16 + 8 * 16 * 16 + 80) + 17 * 16


FAULTS = {
    "a branch on data": (
        "class Net(nn.Module):\n    def forward(self, x):\n        return x if x.sum() > "
        "0 else -x\n"
        "def make():\n    return Net(), torch.randn(2, 3)\n",
        "asks for the value of a tensor",
    ),
    "a shape from data": (
        "class Net(nn.Module):\n    def forward(self, x):\n        return x[x > 0].sum()\n"
        "def make():\n    return Net(), torch.randn(2, 3)\n",
        "depend on data",
    ),
    "a module that raises": (
        "class Net(nn.Module):\n    def forward(self, x):\n        raise ValueError('no "
        "such thing')\n"
        "def make():\n    return Net(), torch.randn(2, 3)\n",
        "ValueError: no such thing",
    ),
    "a module that exits": (
        "class Net(nn.Module):\n    def forward(self, x):\n        raise SystemExit('enough')\n"
        "def make():\n    return Net(), torch.randn(2, 3)\n",
        "SystemExit: enough",
    ),
    "a module that needs more bits": (
        "class Net(nn.Linear):\n    def forward(self, x):\n"
        "        return super().forward(x)[None] @ torch.ones(1, 4, 4).float()\n"
        "def make():\n    return Net(4, 4), torch.randn(2, 4)\n",
        "traced in 16 bit",
    ),
    "a function that raises": ("def make():\n    raise KeyError('width')\n", "KeyError: 'width'"),
    "a wrong return": ("def make():\n    return 3\n", "returned int"),
    "no module": ("def make():\n    return 3, torch.randn(2)\n", "is int, not an nn.Module"),
    "no inputs": ("def make():\n    return Mixer(4), None\n", "hold no tensor"),
    "a loss that is not a scalar": (
        "def make():\n    return Mixer(4), torch.randn(2, 4), lambda y: y\n",
        "the loss is a tensor of shape (2, 4), not a scalar",
    ),
    "a block never called": (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.blocks = nn.ModuleList(Mixer(4) for _ in range(3))\n"
        "    def forward(self, x):\n        return self.blocks[0](x)\n"
        "def make():\n    return Net(), torch.randn(2, 4)\n",
        "blocks.1: the block was never called (2 of 3",
    ),
    "nothing to train": ("def make():\n    return nn.ReLU(), torch.randn(2, 4)\n", "no parameter"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_user_is_one_sentence_that_quotes_it(tmp_path: Path, fault: str) -> None:
    body, says = FAULTS[fault]
    assert says in refused(tmp_path, body)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for text in (f"{tmp_path}/none.py:make", "no.such.module:make", f"{tmp_path}/none.json"):
        with pytest.raises(InputError, match=r"no such file|cannot be imported"):
            source_of(text)
    with pytest.raises(InputError, match="there is no function 'other'"):
        source_of(written(tmp_path, "").replace(":make", ":other"))


def test_an_unknown_name_points_to_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'bert-large'"):
        source_of("bert-larg")


UNKNOWN = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.map = nn.Linear(4, 4)
    def forward(self, x):
        y = self.map(x).float()
        return torch.special.bessel_j0(y.detach()).sum() + torch.linalg.det(y)
def make():
    return Net(), torch.randn(4, 4)
"""


def test_an_unknown_operator_is_named_with_its_place_and_all_can_be_listed(tmp_path: Path) -> None:
    text = refused(tmp_path, UNKNOWN, microbatch=4)
    assert "unknown operator" in text and "given.py:" in text and "opset.py" in text
    listed = unknown_operators(source_of(written(tmp_path, UNKNOWN)), microbatch=4)
    assert {"aten.special_bessel_j0.default"} < {name for name, _, _ in listed}


CROSSING = """
class Block(Mixer):
    box = ()
    def forward(self, x):
        return super().forward(x) * self.box[0] if self.box else super().forward(x)
class Net(nn.Module):
    def __init__(self, way):
        super().__init__()
        self.way, self.first = way, nn.Linear(16, 16)
        self.blocks = nn.ModuleList(Block(16) for _ in range(3))
    def forward(self, x):
        mask, total = torch.special.bessel_j0(torch.arange(16.0)), torch.zeros(16)
        for block in self.blocks:
            block.box = (mask,) if self.way == "held" else ()
            x = block(self.first(x))
            if self.way == "changed":
                total.add_(mask)
        return (x * {"late": mask, "changed": total, "held": 1}[self.way]).sum()
def late(): return Net("late"), torch.randn(2, 8, 16)
def held(): return Net("held"), torch.randn(2, 8, 16)
def changed(): return Net("changed"), torch.randn(2, 8, 16)
"""


@pytest.mark.parametrize("way", ["late", "held", "changed"])
def test_what_has_no_gradient_counts_where_it_is_made_whoever_reads_it(
    tmp_path: Path, way: str
) -> None:
    place = written(tmp_path, CROSSING).replace(":make", f":{way}")
    listed = unknown_operators(source_of(place))
    assert [name for name, _, _ in listed] == ["aten.special_bessel_j0.default"]
    known = written(tmp_path, CROSSING.replace("special.bessel_j0", "exp")).replace(
        ":make", f":{way}"
    )
    model = trace_model(source_of(known))
    makers = [
        layer.name for layer in model.layers for op in layer.forward.operators if op.kind == "exp"
    ]
    assert makers == ["prologue"]
    sums = [call.module for call in model.calls if call.module.startswith("between")]
    assert (
        len(sums) == 2
    )  # each has its linear map; with the third sum, in the epilogue, they change the total
    adds = [
        op.kind
        for layer in model.layers
        for op in layer.forward.operators
        if op.sizes == (("elements", 16),)
    ]
    assert adds.count("add") == (3 if way == "changed" else 0)


def test_a_table_made_anew_for_every_block_stays_in_the_order_of_the_code(tmp_path: Path) -> None:
    body = """
    class Block(Mixer):
        def forward(self, x, table):
            return super().forward(x) * table
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(Block(16) for _ in range(4))
        def forward(self, x):
            for block in self.blocks:
                x = block(x, torch.arange(16).cos().to(x.dtype))
            return x.sum()
    def make():
        return Net(), torch.randn(2, 8, 16)
    """
    model = traced(tmp_path, body)
    ahead = {(edge.source, edge.target) for edge in model.edges}
    assert len(model.calls) == 9 and {(n, n + 1) for n in range(1, 8)} <= ahead


SIDEWAYS = """
class Block(nn.Module):
    kept = None
    def __init__(self, way):
        super().__init__()
        self.way, self.map = way, nn.Linear(16, 16)
    def forward(self, x, bag):
        if self.way == "changes":
            x += 1
        if self.way == "keeps":
            self.kept = self.map(x).mean()
        if self.way == "bag" and not bag:
            bag["first"] = torch.tanh(x)
        if self.way in ("bag", "holds"):
            x = x * bag["first"] if self.way == "bag" else x * self.kept.T.T
        return x + self.map(x)
class Net(nn.Module):
    def __init__(self, way):
        super().__init__()
        self.way, self.first, self.other = way, nn.Linear(16, 16), nn.Linear(16, 16)
        self.blocks = nn.ModuleList(Block(way) for _ in range(4))
    def forward(self, x):
        x, bag = self.first(x), {}
        if self.way == "holds":
            for block in self.blocks:
                block.kept = self.other(x)
        for block in self.blocks:
            x = block(x, bag)
            if self.way == "between":
                x.mul_(2)
        return x.sum() + sum(block.kept for block in self.blocks if self.way == "keeps")
def way(name):
    return lambda: (Net(name), torch.randn(8, 16))
plain, changes, keeps, bag, holds, between = map(way, ("plain", "changes", "keeps", "bag", "holds", "between"))
"""


@pytest.mark.parametrize(
    ("way", "maps", "gradients", "classes"),
    [
        (
            "plain",
            5,
            9,
            [4],
        ),  # one map before four blocks; each has two gradients, the first no input's
        ("changes", 5, 9, [4]),  # a block changes what it was given
        ("between", 5, 9, [4]),  # so does the model, and does not say so by assigning it
        ("keeps", 9, 17, [4]),  # a block keeps a loss, which the model adds up
        (
            "bag",
            5,
            9,
            [1, 3],
        ),  # the first block puts something into a dictionary that all of them read
        (
            "holds",
            9,
            17,
            [4],
        ),  # each block has a result of the model that it is not given as an argument
    ],
)
def test_what_blocks_exchange_on_the_side_is_counted(
    tmp_path: Path, way: str, maps: int, gradients: int, classes: list[int]
) -> None:
    model = trace_model(
        source_of(written(tmp_path, SIDEWAYS).replace(":make", f":{way}")), microbatch=8
    )
    products = [
        sum(
            op.kind == "product"
            for call in model.calls
            for op in getattr(model.layers[call.layer], side).operators
        )
        for side in ("forward", "backward")
    ]
    assert products == [maps, gradients]
    assert [
        model.count(i) for i, layer in enumerate(model.layers) if layer.name.startswith("blocks")
    ] == classes
    assert model.parameters == 6 * 17 * 16


def test_results_that_only_some_calls_use_do_not_fold(tmp_path: Path) -> None:
    body = """
    class Block(Mixer):
        def __init__(self):
            super().__init__(16)
            self.side = nn.Linear(16, 16)
        def forward(self, x):
            return super().forward(x), self.side(x)
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(Block() for _ in range(4))
        def forward(self, x):
            for block in self.blocks:
                x, side = block(x)
            return x.sum() + side.sum()
    def make():
        return nn.Sequential(nn.Linear(16, 16), Net()), torch.randn(8, 16)
    """
    model = traced(tmp_path, body, microbatch=8)
    blocks = [layer for layer in model.layers if "blocks" in layer.name]
    assert [sum(op.kind == "product" for op in layer.forward.operators) for layer in blocks] == [
        2,
        3,
    ]


def test_a_configuration_on_disk_is_a_source(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(
        '{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": '
        '32, "num_hidden_layers": 2,'
        '"num_attention_heads": 4, "intermediate_size": 48, "vocab_size": 48, '
        '"max_position_embeddings": 16}'
    )
    model = trace_model(source_of(str(path)), tensor=2)
    assert (model.sequence, model.count(1)) == (16, 2)
    path.write_text('{"model_type": "lama"}')
    with pytest.raises(InputError, match="model_type"):
        source_of(str(path))
    path.write_text('{"model_type": "llama"}')
    with pytest.raises(InputError, match="architectures"):
        source_of(str(path))
    for text, word in (
        ('"architectures": -1', "not a list of names"),
        ('"num_hidden_layers": 9000000', "more than 4,096"),
    ):
        path.write_text(f'{{"model_type": "llama", {text}}}')
        with pytest.raises(InputError, match=word):
            source_of(str(path))


def test_a_weight_that_is_handed_to_blocks_and_one_whose_result_is_dropped_count_once(
    tmp_path: Path,
) -> None:
    body = """
    class Block(Mixer):
        def forward(self, x, table):
            return super().forward(x) + table.sum(0)
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(7, 16)
            self.spare = nn.Linear(16, 5)
            self.blocks = nn.ModuleList(Block(16) for _ in range(4))
        def forward(self, x):
            for block in self.blocks:
                x = block(x, self.table.weight)
            self.spare(x)
            return x
    def make():
        return Net(), torch.randn(2, 8, 16), lambda y: y.sum()
    """
    model = traced(tmp_path, body)
    assert model.parameters == 4 * (2 * 16 + 8 * 16 * 16 + 80) + 7 * 16 + 17 * 5
    tie = next(tie for tie in model.ties if tie.name == "table.weight")
    assert len(tie.calls) == 4


def test_lists_of_lists_and_a_list_of_one_are_gone_through(tmp_path: Path) -> None:
    body = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stages = nn.ModuleList(nn.ModuleList(Mixer(16) for _ in range(2)) for _ in range(2))
        def forward(self, x):
            for stage in self.stages:
                for block in stage:
                    x = block(x)
            return x
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([Mixer(16)])
        def forward(self, x):
            for _ in range(4):
                x = self.blocks[0](x)
            return x
    def make():
        return Net(), torch.randn(2, 8, 16), lambda y: y.sum()
    def shared():
        return Shared(), torch.randn(2, 8, 16), lambda y: y.sum()
    """
    model = traced(tmp_path, body)
    assert [call.module for call in model.calls][:4] == [
        "stages.0.0",
        "stages.0.1",
        "stages.1.0",
        "stages.1.1",
    ]
    again = trace_model(
        source_of(written(tmp_path, body).replace(":make", ":shared")), microbatch=2
    )
    assert [again.count(i) for i, layer in enumerate(again.layers) if layer.name == "blocks.0"] == [
        1,
        3,
    ]
    assert again.parameters == 2 * 16 + 8 * 16 * 16 + 80


RAISING = """
class Odd(BaseException):
    pass
class Stop(KeyboardInterrupt):
    pass
class Mute(BaseException):
    def __str__(self):
        raise Odd
def exits(): raise SystemExit(7)
def odd(): raise Odd("odd")
def stop(): raise Stop("stop")
def mute(): raise Mute
def outside(): raise GeneratorExit
"""


@pytest.mark.parametrize("name", ["exits", "odd", "stop", "mute", "outside"])
def test_whatever_a_model_file_raises_is_quoted(name: str, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(RAISING)
    with pytest.raises(InputError, match="the function raised"):
        source_of(f"{tmp_path / 'model.py'}:{name}")
    (tmp_path / "early.py").write_text(RAISING + f"{name}()\n")
    with pytest.raises(InputError, match="the file raised"):
        source_of(f"{tmp_path / 'early.py'}:{name}")
