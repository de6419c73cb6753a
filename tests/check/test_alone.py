"""The checker stands alone: it imports nothing of phaze, and runs from a copy of its folder."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import phaze.check

FOLDER = Path(phaze.check.__file__).parent
FILES = sorted(FOLDER.glob("*.py"))
ALLOWED = {
    "argparse",
    "collections",
    "dataclasses",
    "hashlib",
    "heapq",
    "itertools",
    "json",
    "math",
    "numpy",
    "pathlib",
    "sys",
}
ALLOWED |= {"types", "typing"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_it_imports_the_standard_library_numpy_and_itself(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            assert {alias.name.split(".")[0] for alias in node.names} <= ALLOWED
        elif isinstance(node, ast.ImportFrom):
            inside = node.level == 1 and (FOLDER / f"{node.module}.py").is_file()
            assert inside or (node.level == 0 and (node.module or "").split(".")[0] in ALLOWED), (
                ast.unparse(node)
            )
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("__import__", "eval", "exec", "open")


def test_a_copy_of_the_folder_runs_without_phaze(good: Path, tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "check", ignore=shutil.ignore_patterns("__pycache__"))
    code = (
        "import runpy, sys; sys.argv = ['check', sys.argv[1]]\ntry:\n    "
        "runpy.run_module('check', run_name='__main__')"
    )
    code += "\nfinally:\n    assert not [name for name in sys.modules if name.startswith('phaze')]"
    run = subprocess.run(
        [sys.executable, "-c", code, str(good)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1].startswith("holds: 16 chips proved")
