"""Translate files on a Ray cluster (`translate --on ray`), on disk or in object storage; needs softgaze[scale]."""
