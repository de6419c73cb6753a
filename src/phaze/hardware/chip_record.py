"""A chip as documents have it, certificates among them: as cores at the clock that it runs at, and
beside them the clusters of a chip that has them."""

from typing import TYPE_CHECKING, Any

from phaze.hardware.chip_parts import array_feed_bytes_per_cycle, on_die

if TYPE_CHECKING:
    from phaze.hardware.chip import Chip


def states_clusters(chip: "Chip") -> bool:
    """Whether documents state the clusters of the chip: its file is of version 2."""
    return chip.schema_ == "phaze.chip/2"


def chip_record(chip: "Chip") -> dict[str, Any]:
    """The chip: cores, and beside them the clusters of a chip that has them."""
    clusters, vectors, built, clock = chip.clusters, chip.vectors, chip.built, chip.clock_hz
    of_clusters = states_clusters(chip)
    feed = array_feed_bytes_per_cycle(clusters.rows, clusters.columns) * clock
    operands = _memory(
        clusters.operand_bytes // clusters.arrays, clusters.buffer_bytes_per_s or feed
    )
    return {
        "name": chip.name,
        "title": chip.title,
        "clock_hz": clock,
        "tensor_cores": chip.tensor_cores,
        "tensor_core": {"rows": clusters.rows, "columns": clusters.columns, "buffer": operands},
        "vector_cores": vectors.count,
        "vector_core": {
            "lanes": vectors.lanes,
            "buffer": _memory(vectors.register_bytes, vectors.feed_bytes_per_s(clock)),
        },
        "global_buffer": _memory(
            chip.global_buffer.size_bytes, chip.global_bytes_per_s, chip.global_buffer.cache
        ),
        "hbm": _memory(chip.hbm.size_bytes, chip.hbm.bandwidth_bytes_per_s),
        "links": {
            "count": chip.links.count,
            "bandwidth_bytes_per_s": chip.links.bandwidth_bytes_per_s,
        },
        "technology": chip.technology,
        "cluster": chip.cluster,
        "clock_basis": chip.clock_basis,
        "silicon": {
            "dies": built.dies,
            "cores_built": built.clusters[0] / built.clusters[1],
            "global_buffer_built": built.global_buffer[0] / built.global_buffer[1],
            "hbm_built": built.hbm[0] / built.hbm[1],
        },
        "published": chip.published,
        "calibration": chip.calibration,
        "process": None if of_clusters else chip.process,
        "clusters": _cluster_document(chip) if of_clusters else None,
        "rated_hz": chip.rated_hz if of_clusters else None,
        "formats": chip.formats,
        "host_bytes_per_s": chip.host_bytes_per_s,
    }


def _memory(size_bytes: int, bandwidth_bytes_per_s: float, cache: bool = False) -> dict[str, Any]:
    return {
        "size_bytes": size_bytes,
        "bandwidth_bytes_per_s": bandwidth_bytes_per_s,
        "cache": cache,
    }


def _cluster_document(chip: "Chip") -> dict[str, Any]:
    """What a chip of clusters is priced by: the accelerator at its rated clock and the nodes of its
    dies."""
    clusters, vectors, hbm, built = chip.clusters, chip.vectors, chip.hbm, chip.built
    accelerator = {
        "name": chip.name,
        "title": chip.title,
        "clock_hz": chip.rated_hz,
        "technology": chip.technology,
        "clusters": {
            "count": clusters.count,
            "arrays": clusters.arrays,
            "rows": clusters.rows,
            "columns": clusters.columns,
            "lanes": vectors.lanes,
            "operand_bytes": clusters.operand_bytes,
            "register_bytes": vectors.register_bytes,
            "port_bytes_per_cycle": clusters.port_bytes_per_cycle,
            "broadcast": clusters.broadcast,
        },
        "global_buffer": {
            "size_bytes": chip.global_buffer.size_bytes,
            "bytes_per_cycle": chip.global_bytes_per_cycle,
            "fan_out": chip.global_buffer.fan_out,
            "cache": chip.global_buffer.cache,
        },
        "hbm": {
            "stacks": hbm.stacks,
            "generation": hbm.generation,
            "size_bytes": hbm.size_bytes,
            "bandwidth_bytes_per_s": hbm.bandwidth_bytes_per_s,
        },
        "links": {
            "bandwidth_bytes_per_s": chip.links.bandwidth_bytes_per_s,
            "lane_bytes_per_s": chip.links.lane_bytes_per_s,
        },
        "built": {
            "clusters": built.clusters[0],
            "global_buffer_bytes": round(
                on_die(float(chip.global_buffer.size_bytes), built.global_buffer)
            ),
            "hbm_sites": round(on_die(float(hbm.stacks), built.hbm)),
            "dies": built.dies,
            "base_dies": built.base_dies,
            "base_technology": built.base_technology,
            "interfaces": built.interfaces,
            "second_cache_bytes": built.second_cache_bytes,
            "die_link_bytes_per_s": built.die_link_bytes_per_s,
        },
        "sustained_w": chip.sustained_w,
        "cluster": chip.cluster,
        "clock_basis": chip.clock_basis,
        "published": chip.published,
        "measured": chip.measured,
        "formats": chip.formats,
        "host_bytes_per_s": chip.host_bytes_per_s,
    }
    return {
        "accelerator": accelerator,
        "node": chip.process,
        "base_node": chip.base_process,
        "software_of": chip.software_of,
    }
