"""The page: one HTML file that opens from disk and asks nothing of any network.

Shapes are SVG and bars made here in Python, so that they are there without any script, scale with the window and print;
texts are HTML beside them, so that they stay readable on a phone. Only the scatter of all chips is drawn by a script
(``page.js``, no library): tens of thousands of points are a canvas's work, and their numbers travel as packed arrays.
"""
