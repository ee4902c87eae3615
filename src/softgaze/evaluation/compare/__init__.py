"""Several architectures on the same text, tokenizer and budget, and one report of how they differ.

variants → plan                  which models, on what, for how long
turns → running                  each is trained and translates, in processes of its own; what is done stays done
record                           everything that was found: report.json
findings, tables, learning       in sentences, in cells, as a picture
page, markdown → report          for people
"""
