"""A report as one HTML page that needs nothing beside it: verdicts, tables, charts and the worst frames.

It knows reports, maps and what tells whether scores may be compared; nothing below it knows the page. Read `render` first.
"""
