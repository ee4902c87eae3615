"""HTTP server: a web page, the LibreTranslate and DeepL APIs, and the softgaze API `/v1`.

An exported model is served without torch. This module imports nothing, so that the command line can read the default
settings quickly.
"""
