"""Pages of plans, searches, fronts and designs: sections that only a page shows, templates, style
and scripts.

Sections are laid out by :mod:`phaze.report.html`. Shapes are SVG, so that they are there without
any script, scale with the window and print; texts are HTML beside them, so that they stay readable
on a phone. Numbers of what scripts draw travel as packed arrays
(:mod:`phaze.report.page.script_numbers`).
"""
