"""Follow the imports of a package without running them: does every name lead somewhere?

Finds, without a GPU and without torch, that a Dynamo release and an engine do not fit. Imports
inside functions, `if` and `try … except ImportError` may miss and are not followed.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

Import = ast.Import | ast.ImportFrom


def roots_of(name: str) -> list[Path]:
    """Return the folders of a top-level package, or its file; [] when there is none."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return []
    if spec is None:
        return []
    if spec.submodule_search_locations is not None:
        return [Path(folder) for folder in spec.submodule_search_locations]
    return [Path(spec.origin or name)]


def find(module: str) -> Path | None:
    """Return the file or folder of a dotted module, looked up on disk."""
    top, *rest = module.split(".")
    for root in roots_of(top):
        path = root.joinpath(*rest)
        if path.is_dir() or (not rest and path.exists()):
            return path
        if path.with_suffix(".py").is_file():
            return path.with_suffix(".py")
        if rest and any(path.parent.glob(f"{rest[-1]}.*.so")):
            return next(path.parent.glob(f"{rest[-1]}.*.so"))
    return None


def source_of(module: str) -> Path | None:
    """Return the Python file that runs when a module is imported, if it is one."""
    path = find(module)
    if path is not None and path.is_dir():
        path /= "__init__.py"
    return path if path is not None and path.suffix == ".py" and path.is_file() else None


def imports_of(body: list[ast.stmt]) -> Iterator[Import]:
    """Yield the imports that surely run when the module does."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.With | ast.ClassDef):
            yield from imports_of(node.body)


def names_of(tree: ast.Module) -> set[str] | None:
    """Return the names that a module defines at its top; None when nobody can tell."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    return None if {"*", "__getattr__"} & names else names


class Walk:
    """Follows imports through some packages; `faults` says which lead nowhere."""

    def __init__(self, packages: list[str], allow: list[str]) -> None:
        self.packages, self.allow = set(packages), set(allow)
        self.seen: set[str] = set()
        self.faults: set[str] = set()

    def visit(self, module: str, by: str) -> None:
        """Follow a module and, in a package that is walked, all that it imports."""
        if module in self.seen or module in self.allow:
            return
        self.seen.add(module)
        top = module.partition(".")[0]
        if top in sys.stdlib_module_names or top in self.allow:
            return
        if find(module) is None:
            self.faults.add(f"{by} imports {module}, which is not there")
        elif top in self.packages:
            self.follow(module)

    def follow(self, module: str) -> None:
        parent = module.rpartition(".")[0]
        if parent:
            self.visit(parent, module)
        source = source_of(module)
        if source is None:
            return
        for node in imports_of(ast.parse(source.read_text(encoding="utf-8")).body):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self.visit(alias.name, module)
            else:
                self.follow_from(node, module, is_package=source.name == "__init__.py")

    def follow_from(self, node: ast.ImportFrom, module: str, *, is_package: bool) -> None:
        """Follow ``from X import a, b``: X, then each name as a submodule or a name of X."""
        base = node.module or ""
        if node.level:
            parts = module.split(".")
            kept = len(parts) - node.level + (1 if is_package else 0)
            base = ".".join((*parts[:kept], *([base] if base else [])))
        self.visit(base, module)
        if base.partition(".")[0] in sys.stdlib_module_names or base in self.allow:
            return
        for alias in node.names:
            name = f"{base}.{alias.name}"
            if find(name) is not None:
                self.visit(name, module)
            elif not self.defines(base, alias.name) and name not in self.allow:
                self.faults.add(f"{module} imports {alias.name} from {base}, which has none")

    def defines(self, module: str, name: str) -> bool:
        source = source_of(module)
        if source is None or name == "*":
            return True
        names = names_of(ast.parse(source.read_text(encoding="utf-8")))
        return names is None or name in names
