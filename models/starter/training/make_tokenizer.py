"""Cuts the published vocabulary down to the tokens that our texts use: `python make_tokenizer.py`. Deterministic.

How text is cut before merging serves copying: a value has the same tokens in the context and in an answer. A space joins
only the lower-case word behind it; capitalised words, numbers, addresses and ids begin with a token of their own, and digits are single.

The published tokens mostly are words with a space before them. A word that is met without one too (a capitalised one, or an option behind a quotation
mark) and is then cut in two gets a token of its own; `prune.py` gives it the row of the word behind a space.
"""

import json
import sys
from collections import Counter
from random import Random

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

import paths
from banks import bank
from chat import make_chat
from dictionary import COMMON, common_words
from document_tasks import make_tasks
from documents import make_document
from pretrained import Pretrained, load
from prompt import TASK_SYSTEM
from skills import make_exercise
from tasks import dump, task_text

END, START, STOP, THINK, UNTHINK = SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]

CUT = (
    r"'[a-z]{1,2}(?![\p{L}0-9])"
    r"| ?\p{Ll}+(?![\p{L}0-9@_]|[.-][\p{L}0-9])"
    r"|\p{L}+"
    r"|[0-9]"
    r"|\n+"
    r"|[^\S\n]+"
    r"|[^\s\p{L}0-9]+(?: (?=[\p{Lu}0-9]))?"
)

TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
    "{% if enable_thinking is defined and not enable_thinking %}{{ '<think></think>' }}{% endif %}"
    "{% if enable_thinking is defined and enable_thinking %}{{ '<think>\n' }}{% endif %}"
    "{% endif %}"
)


SPACE = "Ġ"
"""The character that represents a space in byte-level BPE."""
OFTEN = 160
"""Number that is added to the count of a common word after a space, so that it stays whole; a quarter of it is added to the count without a
space."""
LEAST = 40
"""Smallest count without a space with which a word gets a token for this form."""


def written(documents: int):
    """Yields the texts that the generator writes in training."""
    r = Random(7)
    yield from [TASK_SYSTEM] * 50
    for name in ("words", "classes", "polarity"):
        for section in bank(name).values():
            for word in section.take("train"):
                # Both forms of a word occur: with and without a space before it.
                yield from [f"{word} {word}"] * 3
    for name in ("topics", "tone", "reviews", "news", "languages", "filler", "claims", "questions"):
        for section in bank(name).values():
            yield from [*section.take("train"), *section.names("train")] * 8
    for i in range(documents):
        d = make_document(r, "train")
        yield d.text
        for task in make_tasks(r, d, "train", 4):
            yield task_text(task.body)
            yield dump(task.answer)
        d, tasks = make_exercise(r, "train")
        yield d.text
        yield from (task_text(t.body) for t in tasks[:2])
        if i % 10 == 0:
            yield from (text for _, text in make_chat(r, "train"))


def pre_tokenizer() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(CUT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def count_pieces(documents: int) -> Counter:
    """Counts the pieces into which texts are cut; adds to the counts of common words."""
    cut, counts = pre_tokenizer(), Counter()
    for text in written(documents):
        counts.update(piece for piece, _ in cut.pre_tokenize_str(text))
    for word in common_words(COMMON):
        counts[SPACE + word] += OFTEN
        counts[word] += OFTEN // 4
    return counts


def merged(tokens: list[str], merges: list[tuple[str, str]]) -> Tokenizer:
    return Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges))


def with_bare_words(p: Pretrained, counts: Counter) -> tuple[list[str], list[tuple[str, str]]]:
    """Returns the published tokens and merges, with one more of each for every frequent word that has a token only after a space."""
    published, known = merged(p.tokens, p.merges), set(p.tokens)
    tokens, merges = list(p.tokens), list(p.merges)
    for word, n in sorted(counts.items(), key=lambda x: (-x[1], x[0])):
        if n >= LEAST and SPACE + word in known and word not in known:
            halves = published.encode(word).tokens
            if len(halves) == 2:
                tokens.append(word)
                merges.append(tuple(halves))
    return tokens, merges


def most_used(tokens: list[str], merges: list[tuple[str, str]], counts: Counter, size: int) -> set[str]:
    """Returns the `size` most used tokens. The tokens from which a token is merged are kept with it."""
    whole, parts = merged(tokens, merges), {a + b: (a, b) for a, b in reversed(merges)}
    used: Counter = Counter()
    for piece, n in counts.items():
        for token in whole.encode(piece).tokens:
            used[token] += n
    needed: Counter = Counter()

    def need(token: str, n: int):
        if n > needed[token]:
            needed[token] = n
            for part in parts.get(token, ()):
                need(part, n)

    for token, n in used.items():
        need(token, n)
    kept = set(pre_tokenizers.ByteLevel.alphabet())
    for token, _ in sorted(needed.items(), key=lambda x: (-x[1], x[0])):
        if len(kept) == size:
            break
        kept.add(token)
    return kept


def main(size: int, documents: int = 20_000):
    counts = count_pieces(documents)
    tokens, merges = with_bare_words(load(), counts)
    kept = most_used(tokens, merges, counts, size - len(SPECIAL))
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = [*letters, *(t for t in tokens if t in kept and len(t) > 1)]
    tokenizer = merged([*SPECIAL, *names], [(a, b) for a, b in merges if a in kept and b in kept and a + b in kept])
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.pre_tokenizer = pre_tokenizer()
    tokenizer.decoder = decoders.ByteLevel()
    paths.TOKENIZER.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(paths.TOKENIZER / "tokenizer.json"), pretty=False)
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": 8192,
        "bos_token": None,
        "eos_token": STOP,
        "pad_token": END,
        "clean_up_tokenization_spaces": False,
        "add_prefix_space": False,
        "chat_template": TEMPLATE,
    }
    (paths.TOKENIZER / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    print(f"{tokenizer.get_vocab_size()} tokens")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 14336)
