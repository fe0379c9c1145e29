"""Published experiments, one file each, with the published numbers beside ours."""
