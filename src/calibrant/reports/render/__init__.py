"""A report as a page, in Markdown, in a notebook and on paper."""
