"""An accelerator written back as ``phaze.chip/2``, so that the file reads as the same value."""

from typing import Any

from phaze.hardware.silicon.chip import Accelerator, ChipMeasurements
from phaze.hardware.silicon.files import SCHEMA
from phaze.hardware.write import toml_text


def accelerator_toml(chip: Accelerator) -> str:
    """The file of ``chip`` as TOML."""
    return toml_text(accelerator_document(chip))


def accelerator_document(chip: Accelerator) -> dict[str, Any]:
    """The file that reads as ``chip``, in base units."""
    clusters, shared, built, said = chip.clusters, chip.global_buffer, chip.built, chip.published
    return {
        "schema": SCHEMA,
        "name": chip.name,
        "title": chip.title,
        "clock": chip.clock_hz,
        "clock_basis": chip.clock_basis,
        "technology": chip.technology,
        "cluster": chip.cluster,
        "clusters": {
            "count": clusters.count,
            "arrays": clusters.arrays,
            "rows": clusters.rows,
            "columns": clusters.columns,
            "lanes": clusters.lanes,
            "operand_buffer": clusters.operand_bytes,
            "registers": clusters.register_bytes,
            "port": clusters.port_bytes_per_cycle,
            "broadcast": clusters.broadcast,
        },
        "global_buffer": {
            "size": shared.size_bytes,
            "width": shared.bytes_per_cycle,
            "fan_out": shared.fan_out,
            "kind": "cache" if shared.cache else "scratchpad",
        },
        "hbm": {
            "stacks": chip.hbm.stacks,
            "generation": chip.hbm.generation,
            "bandwidth": chip.hbm.bandwidth_bytes_per_s,
            "size": chip.hbm.size_bytes,
        },
        "links": {"bandwidth": chip.links.bandwidth_bytes_per_s, "lane": chip.links.lane_bytes_per_s},
        "silicon": {
            "clusters": [built.clusters, clusters.count],
            "global_buffer": _ratio(built.global_buffer_bytes, shared.size_bytes),
            "hbm": [built.hbm_sites, chip.hbm.stacks] if chip.hbm.stacks else None,
            "dies": built.dies,
            "base_dies": built.base_dies,
            "base_technology": built.base_technology,
            "interfaces": built.interfaces,
            "second_cache": built.second_cache_bytes or None,
            "die_links": built.die_link_bytes_per_s or None,
        },
        "power": None if chip.sustained_w is None else {"sustained": chip.sustained_w},
        "published": {
            "peak": said.peak_flops,
            "die": said.die_mm2,
            "die_is_upper_bound": said.die_is_upper_bound,
            "tdp": said.tdp_w,
            "process": said.process,
        },
        "measured": _measured_document(chip.measured),
        "formats": dict(chip.formats),
        **({} if chip.host_bytes_per_s is None else {"host": {"bandwidth": chip.host_bytes_per_s}}),
    }


def _ratio(built: int, used: int) -> list[int]:
    """A pair of small whole numbers in the ratio of two sizes, where there is one; else in KiB."""
    for units in range(1, 257):
        if built * units % used == 0:
            return [built * units // used, units]
    return [max(1, -(-built // 1024)), max(1, used // 1024)]


def _measured_document(said: ChipMeasurements) -> dict[str, Any]:
    return {
        "rate": said.rate_flops,
        "shape": None if said.rate_shape is None else list(said.rate_shape),
        "power": said.power_w,
        "clock": said.clock_hz,
        "start_up": said.start_up_s,
        "vector_start_up": said.vector_start_up_s,
        "hbm_share": said.hbm_share,
        "vector_hbm_share": said.vector_hbm_share,
        "kept_row": said.kept_row_bytes,
        "attention": said.attention,
        "rate_fp8": said.rate_fp8_flops,
    }
