"""Settings, commands and measured results for known corpora."""
