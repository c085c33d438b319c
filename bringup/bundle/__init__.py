"""The tokenizer bundle: what goes in, whether it is enough, whether it fits what workers announce.

Pure: files are read in `edge.bundle_files`, hosts are asked in `flow.bundle`.
"""
