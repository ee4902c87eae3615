"""The four token ids every vocabulary starts with. They belong to no text: no typed string ever becomes one."""

PAD, UNK, BOS, EOS = 0, 1, 2, 3
SPECIAL_TOKENS = (PAD, UNK, BOS, EOS)
