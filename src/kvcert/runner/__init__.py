"""A shard from end to end: one prefill per example, every row decoded as one batch, three Parquet tables."""
