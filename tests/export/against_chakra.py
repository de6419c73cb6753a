"""Every kind of trace, read by Chakra's own code: its schema as its protoc made it, and its reader
of files.

    git clone https://github.com/mlcommons/chakra          no package index has it
    mkdir -p chakra/et_def && protoc -I chakra/schema/protobuf --python_out chakra/et_def
    et_def.proto
    PYTHONPATH=. python -m tests.export.against_chakra               1 if one is not read as it was written
    PYTHONPATH=. python -m tests.export.against_chakra --record      and write tests/export/recorded

It reads as ``chakra_jsonizer`` does: ``decodeMessage`` of its protolib into GlobalMetadata, then
into Nodes.
"""

import importlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from phaze import api
from tests.export.chakra_schema import read_trace
from tests.export.test_chakra import PLANS, RUN, summary

RECORDED = Path(__file__).parent / "recorded" / "chakra.json"
SIZED = ("uint64_val", "int64_val")


def read_by_chakra(path: Path) -> list[Any]:
    """The nodes of a trace as Chakra's own code reads them."""
    schema = importlib.import_module("chakra.et_def.et_def_pb2")
    library = importlib.import_module("chakra.third_party.utils.protolib")
    file, head, found = library.openFileRd(str(path)), schema.GlobalMetadata(), list[Any]()
    assert library.decodeMessage(file, head)
    assert head.version == "0.0.4"
    node = schema.Node()
    while library.decodeMessage(file, node):
        found.append(node)
        node = schema.Node()
    return found


def main() -> int:
    """Read all, say what was read otherwise than written."""
    schema = importlib.import_module("chakra.et_def.et_def_pb2")
    recorded, wrong = {}, 0
    for name, split in PLANS.items():
        with tempfile.TemporaryDirectory() as folder:
            plan = Path(folder) / "plan.json"
            plan.write_text(json.dumps(api.price({**RUN, "plan": split}).document))
            api.export(plan, to="chakra", out=Path(folder) / "traces")
            path = Path(folder) / "traces" / "phaze.5.et"
            theirs, ours = read_by_chakra(path), read_trace(path)
        rows = []
        for node, own in zip(theirs, ours, strict=True):
            sizes = {one.name: getattr(one, one.WhichOneof("value")) for one in node.attr}
            rows.append(
                (
                    schema.NodeType.Name(node.type),
                    sum(node.data_deps),
                    node.duration_micros,
                    sizes.get("comm_size", 0),
                )
            )
            same = node.id == own["id"] and all(own[key] == value for key, value in sizes.items())
            wrong += not same
        recorded[name] = summary(rows)
        sys.stdout.write(f"{name:<20} {len(theirs)} nodes\n")
    if "--record" in sys.argv:
        RECORDED.write_text(json.dumps(recorded, indent=1) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
