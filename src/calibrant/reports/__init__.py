"""The report: plain data first, then words, pictures and a page."""
