"""Files and URLs as storage: paths and URLs, files that are written as a whole, folders of vkssim's own, journals.

It knows `utils`, and nothing of frames or scores. Read `atomic` first, then `journal_file`: everything that a run goes on from
is written through these two.
"""
