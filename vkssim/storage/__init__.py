"""Files by path or URL: whole files, folders of results, journals, and the containers of clips.

Read `atomic` first, then `checked_journal`: a run continues only from files that these two wrote. Nothing here depends on
frames or scores.
"""
