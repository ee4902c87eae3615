"""Train several architectures on the same text, tokenizer and budget, and report how they differ.

experiment     which models, on which text, for how long
jobs           train and translate with each model in its own process; finished jobs are not repeated
results        all measurements as one record: report.json
report         charts, tables, Markdown and an HTML page
"""
