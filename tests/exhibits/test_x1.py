"""X1 on a tiny model."""
from conftest import outcomes
from kvcert.exhibits import x1_unidentifiability as x1

def test_all(grid, root):
    import time; t=time.time()
    found = x1.measure(grid, root, print)
    for e in found["expectations"]: print(e["id"], e["value"], e["low"], e["high"], e["n"], e["outcome"])
    print(time.time()-t)
