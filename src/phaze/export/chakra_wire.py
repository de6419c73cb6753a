"""Chakra execution traces on the wire: the protocol buffers of MLCommons' schema, as far as a plan
has them.

The schema is ``et_def.proto`` of github.com/mlcommons/chakra, package ChakraProtoMsg. A file is
messages one after another, each behind its length as a varint: first GlobalMetadata (1 version),
then Nodes (1 id, 2 name, 3 type, 5 data_deps packed, 7 duration_micros, 10 attr), with
AttributeProto (1 name, then one value by its type). A value that is 0 is left out of a message but
not of an attribute, where it says that there is one. Numbers are field numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

VERSION = "0.0.4"
COMP, SEND, RECV, COLL = 4, 5, 6, 7
"""Kinds of a node: computation, point to point, a collective."""
COLLECTIVES: Mapping[str, int] = MappingProxyType(
    {"all_reduce": 0, "all_gather": 2, "all_to_all": 6, "reduce_scatter": 7}
)
# Fields of an attribute by the type of its value, as Chakra's own generator types each name.
FIELDS: Mapping[str, tuple[str, int]] = MappingProxyType(
    {
        "is_cpu_op": ("bool", 27),
        "num_ops": ("uint64", 13),
        "comm_type": ("int64", 9),
        "comm_size": ("uint64", 13),
        "comm_src": ("uint32", 11),
        "comm_dst": ("uint32", 11),
        "comm_tag": ("uint32", 11),
        "pg_name": ("string", 29),
    }
)
_VARINT, _LENGTH = 0, 2


@dataclass(frozen=True, slots=True)
class ChakraNode:
    """A node of a trace; ``deps`` must end before it starts, ``attributes`` by the names of
    ``FIELDS``."""

    id: int
    name: str
    kind: int
    deps: tuple[int, ...]
    micros: int
    attributes: tuple[tuple[str, int | str], ...]


def varint(number: int) -> bytes:
    """A whole number from 0 on, 7 bits a byte, the lowest first."""
    octets = bytearray()
    while number > 0x7F:
        octets.append(number & 0x7F | 0x80)
        number >>= 7
    octets.append(number)
    return bytes(octets)


def _number(field: int, value: int) -> bytes:
    return varint(field << 3 | _VARINT) + varint(value)


def _block(field: int, content: bytes) -> bytes:
    return varint(field << 3 | _LENGTH) + varint(len(content)) + content


def _attribute(name: str, value: int | str) -> bytes:
    kind, field = FIELDS[name]
    content = _block(field, str(value).encode()) if kind == "string" else _number(field, int(value))
    return _block(1, name.encode()) + content


def encoded(node: ChakraNode) -> bytes:
    """A node as a message."""
    message = _number(1, node.id) if node.id else b""
    message += _block(2, node.name.encode()) + _number(3, node.kind)
    if node.deps:
        message += _block(5, b"".join(varint(dep) for dep in node.deps))
    if node.micros:
        message += _number(7, node.micros)
    return message + b"".join(
        _block(10, _attribute(name, value)) for name, value in node.attributes
    )


def trace_bytes(nodes: Sequence[ChakraNode]) -> bytes:
    """A whole trace of one rank."""
    messages = [_block(1, VERSION.encode()), *(encoded(node) for node in nodes)]
    return b"".join(varint(len(message)) + message for message in messages)
