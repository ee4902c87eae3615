"""Serve models over HTTP: a web page, the APIs that translation tools already speak, and one of our own.

An exported bundle is served without torch. Nothing is imported here, so that the command line can read the defaults.
"""
