"""Networks trained on CIFAR-10 with and without calibration losses: how, and what came out."""
