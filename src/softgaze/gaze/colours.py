"""The colours of pictures: one hue whose darkness is the weight, so that it prints in grey. As in assets/style.css."""

HUE = (29, 78, 137)  # of a weight of 1
INK, FAINT, LINE, GOLD = "#1d1d1b", "#6b6b66", "#d9d9d4", "#b45309"
GREY = "#c4c4be"  # what is beside the map
# Lines of a chart: told apart by any eye, colour-blind or not, and as text readable on white (tests hold both).
SERIES = ("#0f3d95", "#b85c03", "#268261", "#9c4f8d", "#1d1c1c", "#594411")
BLACK, WHITE = "#000000", "#ffffff"


def shade(weight: float) -> str:
    """From white to the hue; the more weight the darker, also in grey."""
    return "#" + "".join(f"{round(255 + weight * (full - 255)):02x}" for full in HUE)


def luminance(colour: str) -> float:
    """Relative, as WCAG 2 defines it."""
    shares = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return sum(factor * share for factor, share in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    """From 1 to 21, as WCAG 2 defines it."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def ink_on(weight: float) -> str:
    """Black or white, whichever is read better on a cell."""
    return max((BLACK, WHITE), key=lambda ink: contrast(ink, shade(weight)))
