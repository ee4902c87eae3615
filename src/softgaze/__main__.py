"""`python -m softgaze` is the same program as `softgaze`."""

from softgaze.cli import main

main()
