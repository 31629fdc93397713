def test_all(grid, root):
    from kvcert.exhibits import controls
    import time; t=time.time()
    found = controls.measure(grid, root, print)
    for e in found["expectations"]: print(e["id"], e["value"], e["low"], e["high"], e["n"], e["outcome"], e["note"])
    print(time.time()-t)
