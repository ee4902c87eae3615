"""Built-in corpora, shipped as compressed files that the generators in `tools/` write."""
