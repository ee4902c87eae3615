"""More text than one machine can translate, and text that does not lie on a disk: `translate --on ray`.

The engines are those that exist: Ray moves the work, Arrow and fsspec reach the files. Both come with `softgaze[scale]`
and are imported only when they are asked for.
"""
