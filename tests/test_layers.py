"""The house rules that a reader of the source relies on, checked on the source itself."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "phaze"
FILES = sorted(SOURCE.rglob("*.py"))
NAMES = [str(path.relative_to(SOURCE)) for path in FILES]


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


# A room may import rooms of a lower rank, and itself.
RANKS = {
    "check": 0,
    "compiled": 0,
    "errors": 0,
    "units": 0,
    "options": 3,
    "document_faults": 0,
    "documents": 0,
    "files": 0,
    "values": 0,
    "pipeline": 0,
    "hardware": 1,
    "graph": 2,
    "cost": 3,
    "schedule": 4,
    "placement": 5,
    "evaluate": 6,
    "search": 7,
    "validate": 7,
    "report": 8,
    "study": 8,
    "export": 9,
    "sweep": 9,
    "explain": 9,
    "front": 10,
    "view": 11,
    "api": 12,
    "cli": 13,
    "__init__": 14,
    "__main__": 15,
}
# A third-party module and the files that alone may import it.
ONLY_IN = {
    "torch": ("graph/torch/",),
    "transformers": ("graph/torch/",),
    "ortools": ("schedule/cpsat.py", "schedule/ilp.py"),
    "ray": ("search/engine_ray.py",),
    "matplotlib": ("api/plots.py", "api/run_values.py", "api/values.py"),
    "pyarrow": ("export/parquet.py",),
    "numba": ("compiled/",),
}
MUTABLE = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
MUTABLE_CALLS = {
    "list",
    "dict",
    "set",
    "defaultdict",
    "OrderedDict",
    "Counter",
    "deque",
    "bytearray",
}


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # The checker runs alone wherever it is copied: its files name each other, and nothing
            # else of phaze.
            alone = path.parent == SOURCE / "check" and node.level == 1
            assert alone or node.level == 0, f"{path}: a relative import"
            module = f"phaze.check.{node.module}" if alone else node.module or ""
            yield from (f"{module}.{alias.name}" for alias in node.names)


def _room(name: str) -> str:
    return name.split("/", maxsplit=1)[0].removesuffix(".py")


def _imports_of_later_rooms(name: str) -> Iterator[str]:
    rank = RANKS[_room(name)]
    for imported in _imports(SOURCE / name):
        parts = imported.split(".")
        if parts[0] != "phaze" or parts[1:] in ([], ["__version__"]):
            continue
        room = parts[1]
        if not (RANKS[room] < rank or room == _room(name) or rank == 0 == RANKS[room]):
            yield f"{name} imports {imported}"


def test_a_room_imports_only_rooms_before_it() -> None:
    assert [wrong for name in NAMES for wrong in _imports_of_later_rooms(name)] == []


def test_the_package_imports_nothing_of_the_tools_beside_it() -> None:
    wrong = [
        name
        for name in NAMES
        for imported in _imports(SOURCE / name)
        if imported.split(".")[0] == "tools"
    ]
    assert wrong == []


def _stays_in_its_place(library: str, name: str) -> bool:
    return library not in ONLY_IN or name.startswith(ONLY_IN[library])


def test_a_heavy_library_stays_in_its_place() -> None:
    wrong = [
        f"{name} imports {imported}"
        for name in NAMES
        for imported in _imports(SOURCE / name)
        if not _stays_in_its_place(imported.split(".")[0], name)
    ]
    assert wrong == []


# A run is verified without the modules that bound, open and order chips in a search or a front.
VERIFIERS = tuple(
    name
    for name in NAMES
    if name.startswith(
        (
            "search/reference_path",
            "search/view_check",
            "front/view_check",
            "search/reference",
            "search/configurations",
            "front/reference",
        )
    )
)
SEARCHERS = tuple(
    f"phaze.{room}.{module}."
    for room, modules in {
        "search": (
            "bounds",
            *("run", "engine", "engines", "engine_ray", "work_item", "shared"),
        ),
        "front": ("run", "state"),
    }.items()
    for module in modules
)


def test_a_run_is_verified_without_what_searched_it() -> None:
    assert {"search/reference_path.py", "search/view_check.py", "front/view_check.py"} <= set(
        VERIFIERS
    )
    wrong = [
        f"{name} imports {imported}"
        for name in VERIFIERS
        for imported in _imports(SOURCE / name)
        if imported.startswith(SEARCHERS)
    ]
    assert wrong == []


def test_a_kernel_lets_an_interrupt_be_heard() -> None:
    """While a kernel holds the interpreter's lock nobody can end the command that runs it."""
    marks = [
        (f"{name}:{mark.lineno}", ast.unparse(mark))
        for name in NAMES
        if name.endswith("kernels.py")
        for node in ast.walk(_tree(SOURCE / name))
        if isinstance(node, ast.FunctionDef)
        for mark in node.decorator_list
    ]
    compiled = [(place, mark) for place, mark in marks if "njit" in mark]
    assert compiled
    assert [place for place, mark in compiled if "nogil=True" not in mark] == []


def _code_lines(name: str) -> int:
    """Lines that are neither blank nor a comment nor of a docstring."""
    text = (SOURCE / name).read_text(encoding="utf-8")
    documented = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    return sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in documented
        for number, line in enumerate(text.splitlines(), 1)
    )


def test_no_file_outgrows_its_room() -> None:
    lines = {name: _code_lines(name) for name in NAMES}
    assert {name: count for name, count in lines.items() if count > 330} == {}


def _is_mutable(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        return value.func.id in MUTABLE_CALLS
    return isinstance(value, MUTABLE)


def _changing_state(name: str) -> Iterator[str]:
    tree = _tree(SOURCE / name)
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            continue
        if _is_mutable(node.value):
            yield f"{name}:{node.lineno}"
    for part in ast.walk(tree):
        if isinstance(part, ast.Global):
            yield f"{name}:{part.lineno}"


def test_no_module_keeps_state_that_can_change() -> None:
    assert [wrong for name in NAMES for wrong in _changing_state(name)] == []


def _code_from_data(name: str) -> Iterator[str]:
    for imported in _imports(SOURCE / name):
        if imported.split(".")[0] in {"pickle", "marshal", "shelve"}:
            yield f"{name} imports {imported}"
    for node in ast.walk(_tree(SOURCE / name)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in {"eval", "exec"}
        ):
            yield f"{name}:{node.lineno}"


def test_nothing_is_unpickled_or_evaluated() -> None:
    assert [wrong for name in NAMES for wrong in _code_from_data(name)] == []


def _writes(tree: ast.AST) -> Iterator[int]:
    """Lines that open a file for writing, by whatever name."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = (
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        )
        said = [
            one.value
            for one in ast.walk(node)
            if isinstance(one, ast.Constant) and isinstance(one.value, str)
        ]
        modes = [
            text
            for text in said
            if text and set(text) <= set("rwaxbt+") and set(text) & set("wax+")
        ]
        flags = {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}
        if name in {"write_text", "write_bytes", "touch", "symlink_to", "hardlink_to"}:
            yield node.lineno
        if name in {"open", "fdopen"} and modes:
            yield node.lineno
        if name == "open" and flags & {"O_WRONLY", "O_RDWR", "O_CREAT"} and "devnull" not in flags:
            yield node.lineno


def test_files_are_written_in_one_place() -> None:
    writes = {name: list(_writes(_tree(SOURCE / name))) for name in NAMES if name != "files.py"}
    assert {name: lines for name, lines in writes.items() if lines} == {}, (
        "use phaze.files.write_whole"
    )


def test_every_module_says_what_it_is() -> None:
    assert [name for name in NAMES if not ast.get_docstring(_tree(SOURCE / name))] == []


def test_the_rules_see_a_violation(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import torch\nfrom phaze.search import space\ncache = {}\nseen = set()\n")
    assert list(_imports(wrong)) == ["torch", "phaze.search.space"]
    values = [
        node.value for node in ast.parse(wrong.read_text()).body if isinstance(node, ast.Assign)
    ]
    assert [_is_mutable(value) for value in values] == [True, True]
    for line in (
        "open('x', 'w')",
        "p.open(mode='ab')",
        "p.write_text('')",
        "os.open(p, os.O_WRONLY)",
    ):
        assert list(_writes(ast.parse(line))) == [1]
    assert not list(_writes(ast.parse("open('notes')\np.open('rb')\nstate.open(chip)")))


# Names that say all there is to say: powers of ten and of two by their units.
UNITS = {"GB", "GIB", "MIB", "MICRO", "KIB"}


def _numbers_without_reason(path: Path) -> Iterator[str]:
    """Module constants that are one number and have neither a docstring nor a comment beside or
    above them."""
    text = path.read_text(encoding="utf-8")
    lines, body = text.splitlines(), ast.parse(text).body
    for node, following in zip(body, [*body[1:], None], strict=True):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        name, inside = node.targets[0].id, list(ast.walk(node.value))
        plain = all(
            isinstance(part, ast.Constant | ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop)
            for part in inside
        )
        numbers = [
            part
            for part in inside
            if isinstance(part, ast.Constant) and type(part.value) in (int, float)
        ]
        if not name.isupper() or name in UNITS or not plain or not numbers:
            continue
        told = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
        above = node.lineno - 2
        while above >= 0 and lines[above][:1].isupper():
            above -= 1
        commented = lines[above].startswith("#") or "#" in lines[node.lineno - 1]
        if not (told or commented):
            yield f"{name} = {ast.unparse(node.value)}"


def test_every_number_has_its_reason() -> None:
    wrong = {name: list(_numbers_without_reason(SOURCE / name)) for name in NAMES}
    assert {name: numbers for name, numbers in wrong.items() if numbers} == {}
