"""The options that name files with captions: `--images DIR --captions FILE`, or `--features DIR --captions FILE`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from softgaze.errors import UsageError

if TYPE_CHECKING:
    from softgaze.config import Config
    from softgaze.data.album import Album

NAMED = 10  # rows of a file of captions that are complained about one by one


class Folders(NamedTuple):
    """As they were given."""

    images: Path | None
    features: Path | None
    captions: Path | None

    @property
    def given(self) -> bool:
        """Whether sources are to be files."""
        return any(self)

    def settings(self) -> dict[str, Any]:
        """What goes without saying."""
        if not self.given:
            return {}
        options = {"encoder": "frames"} if self.features else {}
        return {"model": {"arch": "captioner", "options": options}}

    def check(self, texts: Sequence[Path]) -> None:
        """One folder and its captions, and no text beside them."""
        if texts:
            raise UsageError("pictures or features and pairs of text are different things to learn; give one of them")
        if (self.images is None) == (self.features is None):
            raise UsageError("--captions needs one folder of files: --images DIR or --features DIR")
        if self.captions is None:
            raise UsageError("files need their captions: --captions FILE")

    def one(self) -> tuple[Path, Path]:
        """The folder and its captions."""
        self.check(())
        folder = self.images or self.features
        assert folder is not None
        assert self.captions is not None
        return folder, self.captions

    def albums(self, config: "Config", dev: Sequence[tuple[Path, Path]]) -> "tuple[Album, Album | None]":
        """What to train on, and what to validate on where that is given."""
        if len(dev) > 1:
            raise UsageError("--dev takes one folder and its captions: --dev DIR CAPTIONS")
        complaints = Complaints()
        train = self.album(config, complaints)
        held_out = [train.beside(folder, captions, complaints) for folder, captions in dev]
        complaints.conclude()
        return train, held_out[0] if held_out else None

    def album(self, config: "Config", complaints: "Complaints") -> "Album":
        """Of the folder that is given."""
        from softgaze.config import resolve
        from softgaze.data.album import Album
        from softgaze.data.readers import picture_reader

        assert self.captions is not None
        if self.features is not None:
            return Album.of_features(self.features, self.captions, complaints)
        assert self.images is not None
        options = resolve(config).model.options
        reader = picture_reader(options.get("encoder", "cnn"), options.get("frozen", True), config.data.side)
        return Album.of(self.images, self.captions, reader, complaints)


class Complaints:
    """Says what is left out, and why: the first rows one by one."""

    def __init__(self) -> None:
        self.errors: list[Any] = []

    def __call__(self, error: Any) -> None:
        """Of one."""
        self.errors.append(error)
        if len(self.errors) <= NAMED:
            typer.echo(f"left out: {error}", err=True)

    def conclude(self) -> None:
        """How many there were of each kind, if not all have been named."""
        from softgaze.data.captions import tally

        if len(self.errors) > NAMED:
            kinds = ", ".join(f"{count:,} × {kind}" for kind, count in tally(self.errors).items())
            typer.echo(f"left out: {len(self.errors):,} rows of captions in all ({kinds})", err=True)
