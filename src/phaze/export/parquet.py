"""Columns as Parquet, through pyarrow: the one file that asks for it."""

import io

from phaze.errors import InputError
from phaze.export.frame import Frame


def parquet_bytes(frame: Frame) -> bytes:
    """The frame as a Parquet file; the same frame gives the same bytes."""
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise InputError(
            "--to parquet",
            "pyarrow is not installed",
            "pip install -e '.[parquet]' in phaze's folder, or export to csv",
        ) from None
    out = io.BytesIO()
    parquet.write_table(arrow.table({name: column.tolist() for name, column in frame.items()}), out)
    return out.getvalue()
