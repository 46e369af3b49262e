"""Reports as one self-contained HTML page: verdicts, tables, charts and the worst moments.

This package uses reports, maps and the rules of comparisons. No lower package imports it. Read `render` first.
"""
