"""What every report is made of: plain data, the problem and its slices, evidence and verdict."""
