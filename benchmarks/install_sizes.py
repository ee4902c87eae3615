"""Measure the size of the base install and of each extra, as installed here, and write install-sizes.json.

python -m benchmarks.install_sizes
"""

import json
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks.shipping import needed, package_size

ROOT = Path(__file__).parents[1]
OUT = ROOT / "benchmarks/install-sizes.json"


def closure(requirements: list[str]) -> dict[str, int]:
    """Return the bytes of each installed package that the requirements need."""
    wanted = [Requirement(text) for text in requirements]
    waiting = [each.name for each in wanted]
    waiting += [package for each in wanted for extra in each.extras for package in needed(each.name, extra)]
    found: dict[str, int] = {}
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name not in found:
            found[name] = package_size(name)
            waiting += needed(name)
    return found


def main() -> int:
    """Write MB and number of packages: of the base install, and what each extra adds to it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    names = [each for each in extras if each not in ("docs", "dev", "all")]
    base = closure(project["dependencies"]) | {"softgaze": package_size("softgaze")}
    parts = {"base": base, **{name: closure(extras[name]) for name in names}}
    parts["all"] = {package: size for name in names for package, size in parts[name].items()}
    added = {name: {p: s for p, s in part.items() if name == "base" or p not in base} for name, part in parts.items()}
    record = {name: {"megabytes": round(sum(p.values()) / 1e6), "packages": len(p)} for name, p in added.items()}
    OUT.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
