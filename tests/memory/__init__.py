"""Tests of the layers of a model's memory."""
