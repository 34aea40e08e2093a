# Fills Python's arenas with what every process of this program has the same, for two of them to merge.
# SPDX-License-Identifier: MIT
#
# usage: fill-python [MIB]
# Prints "ready PID BYTES", and stays until its standard input ends. The module lies beside it.
#
# In a Python that is position-independent each object begins with an address that is another in each
# process: then no page is equal (setarch -R makes them so).
import os
import random
import sys

import ksmreg

ksmreg.install()
mib = int(sys.argv[1]) if len(sys.argv) > 1 else 64
source = random.Random(1)
kept = []
got = 0
while got < mib << 20:
    # of several sizes, each with arenas' pools of its own; one in 16 goes away again
    size = source.choice((24, 100, 400))
    item = source.getrandbits(8 * size).to_bytes(size, "little")
    kept.append(item)
    got += sys.getsizeof(item)
    if len(kept) % 16 == 7:
        got -= sys.getsizeof(kept[-4])
        kept[-4] = None
print("ready", os.getpid(), got, flush=True)
sys.stdin.read()
