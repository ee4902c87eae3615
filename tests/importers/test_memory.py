"""The memory of an import, measured as the peak of a real process, at a tenth of the size of NLLB-200 600M."""

import subprocess
import sys

import pytest

from importers import foreign
from softgaze.importers import ImportCallback, import_model

transformers = foreign.transformers

# The child compares tensors, as for every model above 1 GiB: the library that wrote a model needs twice its size.
CHILD = """
import sys
from softgaze.importers import import_model, verify
from softgaze.runtime import peak_memory
verify.MAX_REFERENCE_BYTES = 0
import_model(sys.argv[1], sys.argv[2])
print(peak_memory())
"""


def peak_memory(source, output) -> int:
    done = subprocess.run([sys.executable, "-c", CHILD, source, output], capture_output=True, text=True, check=True)
    return int(done.stdout.splitlines()[-1])


@pytest.mark.skipif(sys.platform != "linux", reason="the peak memory of a process is read from /proc")
def test_a_verified_import_holds_one_copy_of_the_weights(tmp_path):
    """Libraries and tokenizers are measured with a small model; a second copy of the weights would exceed the limit.

    NLLB-200 600M itself takes 1.2 times its size. At a tenth of it, memory that the allocator keeps adds 0.1 to 0.2.
    """
    foreign.nllb(tmp_path / "small")
    sizes = {"d_model": 512, "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048, "encoder_layers": 4, "decoder_layers": 4}
    save_large(tmp_path / "large", 40_000, **sizes)
    size = (tmp_path / "large/model.safetensors").stat().st_size
    base, peak = (peak_memory(tmp_path / name, tmp_path / f"{name}-imported") for name in ("small", "large"))
    assert size > 180e6
    assert peak - base < 1.5 * size


def save_large(directory, rows, **sizes):
    """Save an NLLB model of many rows, most of which no piece uses, without drawing its weights."""
    foreign.nllb(directory)
    config = transformers.M2M100Config.from_pretrained(directory, vocab_size=rows, **sizes)
    transformers.M2M100ForConditionalGeneration(config).save_pretrained(directory)


def test_the_callback_receives_tensors_bytes_and_the_verification(tmp_path):
    class Log(ImportCallback):
        written, stages = 0, ()

        def on_start(self, tensors, size):
            self.size, self.stages = size, (tensors,)

        def on_write(self, size):
            self.written += size

        def on_verify(self, compared):
            self.stages += (compared, self.written == self.size)

    foreign.marian(tmp_path / "original")
    log = Log()
    import_model(tmp_path / "original", tmp_path / "imported", callback=log)
    assert log.stages[0] > 50
    assert log.stages[1:] == ("logits", True)
    weights = (tmp_path / "imported/model.safetensors").stat().st_size
    assert log.size == pytest.approx(weights, rel=0.2)
