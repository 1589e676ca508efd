"""`make bench`: one JSON object a line: {"name", "ours", "peer", "unit", "ratio", "goal", "holds"}.

Arguments choose benchmarks by a part of their names: `python -m tests.benchmarks clone memory`.
"""

import importlib
import json
import sys

MODULES = {
    "tests.benchmarks.bench_backoff": ("backoff",),
    "tests.benchmarks.bench_clone": ("clone",),
    "tests.benchmarks.bench_copy_back": ("copy_back",),
    "tests.benchmarks.bench_dispatch": ("dispatch_read", "dispatch_parallel"),
    "tests.benchmarks.bench_retrying": ("throughput", "memory"),
    "tests.benchmarks.bench_providers": ("provider_overhead",),
    "tests.benchmarks.bench_exec": ("exec_output_50mb", "exec_small"),
}


def main(wanted: list[str]) -> int:
    held = True
    for module, names in MODULES.items():
        if wanted and not any(word in name for word in wanted for name in names):
            continue
        for row in importlib.import_module(module).benchmarks():
            print(json.dumps(row), flush=True)
            held = held and row["holds"]
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
