"""The live runtime: what a task keeps beside its state, saved, checked and brought back."""
