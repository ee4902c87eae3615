"""Draw attention maps as SVG, HTML and text."""
