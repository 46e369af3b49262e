"""Make one self-contained HTML page of reports: verdicts, tables, charts and the worst moments.

This package knows reports, maps and the rules of comparisons. No lower package knows the page. Read `render` first.
"""
