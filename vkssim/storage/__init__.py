"""Store files by path or URL: write files as a whole, keep folders of vkssim's own, and write journals.

This package knows `utils`, and nothing of frames or scores. Read `atomic` first, then `journal_file`: a run continues only from
files that these two wrote.
"""
