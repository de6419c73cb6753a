"""``phaze doctor``: what is installed, what is missing for which command, and where caches and runs
lie."""

from typing import Any

from phaze.api.values import Answer
from phaze.report.sections import Figures, Table

# A distribution, the commands that need it, and what installs it; what every command needs has no
# extra.
NEEDED = (
    ("numpy", "everything", ""),
    ("numba", "everything", ""),
    ("ortools", "schedules that labels leave open, --scheduler ilp", ""),
    ("pydantic", "everything", ""),
    ("typer", "the command line", ""),
    ("rich", "the command line", ""),
    ("torch", "tracing your own model, graph --fresh", "torch"),
    ("transformers", "tracing a config.json", "torch"),
    ("ray", "search --engine ray", "ray"),
    ("pyarrow", "export --to parquet", "parquet"),
)


def _installed(name: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _compiled() -> int:
    """How many compiled kernels lie beside the package."""
    from pathlib import Path

    import phaze

    return sum(1 for _ in Path(phaze.__file__).parent.rglob("*.nbc"))


def doctor() -> Answer:
    """Report what is installed, what is missing for which command, and where files are stored.

    Example: phaze doctor
    """
    import os
    import platform
    from pathlib import Path

    from phaze import __version__
    from phaze.compiled.library import library_serves
    from phaze.compiled.sources import kernel_files
    from phaze.graph.supply.cache import GraphCache, cache_folder

    rows = [(name, _installed(name), what, extra) for name, what, extra in NEEDED]
    models, compiled = GraphCache(cache_folder()).entries(), _compiled()
    files = kernel_files()
    shipped = sum(map(library_serves, files))
    runs = Path("runs").resolve()
    document: dict[str, Any] = {
        "phaze": __version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "packages": [
            {"name": name, "version": version, "needed_for": what, "extra": extra or None}
            for name, version, what, extra in rows
        ],
        "compiled_kernels": compiled,
        "shipped_kernels": {"files": len(files), "current": shipped},
        "cache": {"folder": str(cache_folder()), "models": len(models)},
        "runs": {"folder": str(runs), "exists": runs.is_dir()},
    }
    packages = [
        (
            name,
            version or f"missing: pip install -e '.[{extra}]'" if extra else version or "missing",
            what,
        )
        for name, version, what, extra in rows
    ]
    ready = (
        f"{shipped} of {len(files)} files run from the shipped libraries, {compiled:,} "
        "functions in numba's cache"
    )
    if shipped < len(files) and not compiled:
        ready += ": phaze kernels compiles the rest (up to two minutes)"
    places = [
        ("compiled kernels", ready),
        ("traced graphs", f"{cache_folder()} ({len(models):,} models; phaze cache)"),
        ("runs", f"{runs} (a search without --out writes there)"),
    ]
    title = f"phaze {__version__}, Python {platform.python_version()}, {os.cpu_count()} cores"
    table = Table(("package", "installed", "needed for"), packages, title, texts=3)
    return Answer(document, lambda: [table, Figures(places)])
