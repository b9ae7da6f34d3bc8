"""Paths of files and folders."""

from pathlib import Path

TRAINING = Path(__file__).parent
MODEL = TRAINING.parent
ROOT = MODEL.parent.parent
"""Folder of what git ignores: checkpoints, logs, and the exporter's input."""
WORK = TRAINING / "work"
TOKENIZER = WORK / "tokenizer"
SOURCES = WORK / "sources"
