"""From files to batches: corpus → tokens → shards → batches, and the built-in corpora."""
