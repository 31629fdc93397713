"""The two caches of a run: the whole context (also the shadow that truth is measured on) and what each row retains."""
