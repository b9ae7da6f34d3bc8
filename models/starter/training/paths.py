"""Where things lie."""

from pathlib import Path

TRAINING = Path(__file__).parent
MODEL = TRAINING.parent
ROOT = MODEL.parent.parent
"""What git does not keep: checkpoints, logs, the exporter's input."""
WORK = TRAINING / "work"
TOKENIZER = WORK / "tokenizer"
SOURCES = WORK / "sources"
