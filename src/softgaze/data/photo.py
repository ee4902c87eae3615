"""The photo that the columns of an attention lie on: kept with the weights, so that it can be drawn anywhere."""

import base64
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from softgaze.data.boxes import Box
from softgaze.data.images import WHOLE, Frame, Framing, Size, at_most, encode_image, read_image, untouched

LONGEST = 640  # pixels of a photo's side in a page: sharp enough to see, small enough to send
MEDIA = ("image/jpeg", "image/png")


@dataclass(frozen=True)
class Photo:
    """A picture to show: `image` is a file of the kind `media`; the grid lies on `crop` of it."""

    image: bytes
    media: str
    size: Size  # of the photo itself, upright, however large the file is
    crop: Box = WHOLE

    def __post_init__(self) -> None:
        if self.media not in MEDIA:
            raise ValueError(f"a photo to show is one of {', '.join(MEDIA)}, not {self.media!r}")
        if min(self.size) < 1:
            raise ValueError(f"a photo of {self.size[0]}×{self.size[1]} pixels has no shape")

    def to_grid(self, box: Box) -> Box:
        """Where a box of the photo lies on the grid; one that the model did not see has no area."""
        return Framing(self.size, self.crop, self.size).to_view(box)

    @cached_property
    def address(self) -> str:
        """The image as an address that loads nothing."""
        return f"data:{self.media};base64,{base64.b64encode(self.image).decode()}"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        image = base64.b64encode(self.image).decode()
        return {"image": image, "media": self.media, "size": list(self.size), "crop": list(self.crop)}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> "Photo":
        """What `to_dict` wrote."""
        image = base64.b64decode(stored["image"], validate=True)
        width, height = map(int, stored["size"])
        return cls(image, str(stored["media"]), Size(width, height), Box(*map(float, stored["crop"])))


def photo_of(path: Path, frame: Frame = untouched) -> Photo:
    """A photo on disk, small enough for a page; `frame` says which part of it the model sees."""
    pixels, framing = read_image(path, at_most(LONGEST))
    return Photo(*encode_image(pixels), framing.photo, frame(framing.photo).crop)
