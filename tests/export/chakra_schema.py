"""Chakra's published schema as far as traces of plans use it, for Google's protocol buffers to read
files by.

Field numbers and types of ``et_def.proto``, github.com/mlcommons/chakra: GlobalMetadata, Node,
AttributeProto. What a file has beyond them is kept as unknown fields, which the tests refuse.
"""

from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # type: ignore[import-untyped]

TYPES = descriptor_pb2.FieldDescriptorProto
NODES = {4: "COMP_NODE", 5: "COMM_SEND_NODE", 6: "COMM_RECV_NODE", 7: "COMM_COLL_NODE"}
# Message: field: number, type, repeated, member of the oneof.
SCHEMA: dict[str, dict[str, tuple[int, int, bool, bool]]] = {
    "AttributeProto": {
        "name": (1, TYPES.TYPE_STRING, False, False),
        "doc_string": (2, TYPES.TYPE_STRING, False, False),
        "int32_val": (7, TYPES.TYPE_INT32, False, True),
        "int64_val": (9, TYPES.TYPE_INT64, False, True),
        "uint32_val": (11, TYPES.TYPE_UINT32, False, True),
        "uint64_val": (13, TYPES.TYPE_UINT64, False, True),
        "bool_val": (27, TYPES.TYPE_BOOL, False, True),
        "string_val": (29, TYPES.TYPE_STRING, False, True),
    },
    "GlobalMetadata": {
        "version": (1, TYPES.TYPE_STRING, False, False),
        "attr": (2, TYPES.TYPE_MESSAGE, True, False),
    },
    "Node": {
        "id": (1, TYPES.TYPE_UINT64, False, False),
        "name": (2, TYPES.TYPE_STRING, False, False),
        "type": (3, TYPES.TYPE_INT32, False, False),
        "ctrl_deps": (4, TYPES.TYPE_UINT64, True, False),
        "data_deps": (5, TYPES.TYPE_UINT64, True, False),
        "start_time_micros": (6, TYPES.TYPE_UINT64, False, False),
        "duration_micros": (7, TYPES.TYPE_UINT64, False, False),
        "attr": (10, TYPES.TYPE_MESSAGE, True, False),
    },
}


def _messages() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name="et_def.proto", package="ChakraProtoMsg", syntax="proto3"
    )
    for name, fields in SCHEMA.items():
        message = file.message_type.add(name=name)
        if any(one_of for _, _, _, one_of in fields.values()):
            message.oneof_decl.add(name="value")
        for field, (number, kind, repeated, one_of) in fields.items():
            label = TYPES.LABEL_REPEATED if repeated else TYPES.LABEL_OPTIONAL
            own = message.field.add(name=field, number=number, type=kind, label=label)
            if kind == TYPES.TYPE_MESSAGE:
                own.type_name = ".ChakraProtoMsg.AttributeProto"
            if one_of:
                own.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = (pool.FindMessageTypeByName(f"ChakraProtoMsg.{name}") for name in SCHEMA)
    return {one.name: message_factory.GetMessageClass(one) for one in found}


def read_trace(path: Path) -> list[dict[str, Any]]:
    """The nodes of a trace as plain values, attributes by name; every byte of the file is read and
    known."""
    classes, content, at, found = _messages(), path.read_bytes(), 0, list[dict[str, Any]]()
    version = None
    while at < len(content):
        size = shift = 0
        while True:
            byte, at = content[at], at + 1
            size, shift = size | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                break
        message = classes["GlobalMetadata" if version is None else "Node"]()
        assert message.ParseFromString(content[at : at + size]) == size
        before = message.SerializeToString(deterministic=True)
        message.DiscardUnknownFields()
        assert message.SerializeToString(deterministic=True) == before, (
            "a field that the schema does not have"
        )
        at += size
        if version is None:
            version = message.version
            continue
        values = {one.name: getattr(one, one.WhichOneof("value")) for one in message.attr}
        kind = NODES[message.type]
        found.append(
            {"id": message.id, "name": message.name, "kind": kind, "deps": list(message.data_deps),
             "micros": message.duration_micros, **values}
        )  # fmt: skip
    assert version == "0.0.4"
    return found
