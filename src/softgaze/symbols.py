"""The four token ids every vocabulary starts with. They belong to no text: no typed string ever becomes one."""

PAD, UNKNOWN, BEGIN, END = 0, 1, 2, 3
SPECIAL = (PAD, UNKNOWN, BEGIN, END)
