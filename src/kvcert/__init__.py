"""kvcert: a pre-registered reproduction of error certificates for KV-cache eviction."""

__version__ = "0.1.0"
