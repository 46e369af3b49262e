"""Files by path or URL: whole files, folders of results, and journals.

Read `atomic` first, then `journal_file`: a run continues only from files that these two wrote. Nothing here depends on frames
or scores.
"""
