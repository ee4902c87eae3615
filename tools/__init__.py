"""Generators of the built-in corpora; `python -m tools.build_corpora` writes the files that the package ships."""
