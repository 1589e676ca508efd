"""`make canary`: the matrix, the self-proof, and the count of leaks; exits 1 if there is one."""

import sys

from tests.canary.matrix import play
from tests.canary.sinks import SINKS
from tests.canary.sources import SOURCES


def main() -> int:
    matrix = play()
    print("\n".join(matrix.lines()))
    proof = play(fences="down")
    print(f"\nself-proof, all fences down: {len(proof.leaks)} leaks, in {len({sink for _, sink in proof.leaks})} sinks")
    blind = proof.blind()
    for sink in sorted(blind):
        print(f"BLIND  {sink}: nothing was found where something must be")
    for source, sink in matrix.leaks:
        print(f"LEAK   {source} -> {sink}")
    print(f"{len(SOURCES)} sources x {len(SINKS)} sinks, {len(matrix.leaks)} leaks")
    return int(bool(matrix.leaks or blind))


if __name__ == "__main__":
    sys.exit(main())
