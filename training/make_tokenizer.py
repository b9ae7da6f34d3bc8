"""Trains the byte-level BPE vocabulary on the generator's own text: `python make_tokenizer.py`. Deterministic.

How text is cut before merging serves copying: a value has the same tokens in the context and in an answer. A space joins
only the lower-case word behind it; capitalised words, numbers, addresses and ids begin with a token of their own, and digits go
in pairs.

Words that are in common use have one token each, and it stands for what the word vectors say of it (`embedding.py`), so that a word which training hardly met means something
all the same. A word has a token with a space before it and one without (behind a quotation mark, as options are written).
"""

import json
import re
import sys
from collections import Counter
from random import Random

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

import paths
from banks import bank
from chat import make_chat
from dictionary import COMMON, common_words
from document_tasks import make_tasks
from documents import make_document
from prompt import TASK_SYSTEM
from skills import make_exercise
from tasks import dump, task_text

END, START, STOP, THINK, UNTHINK = SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]

CUT = (
    r"'[a-z]{1,2}(?![\p{L}0-9])"
    r"| ?\p{Ll}+(?![\p{L}0-9@_]|[.-][\p{L}0-9])"
    r"|\p{L}+"
    r"|[0-9]{1,2}"
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


OFTEN = 1000
"""So often a word of the list is shown, which makes it a token before rare pieces become any."""
CAPITALS = 2500
"""So many words have a token with a capital too."""


def written(documents: int):
    """What the generator writes in training."""
    r = Random(7)
    yield from [TASK_SYSTEM] * 50
    yield " ".join(f"{i:02}" for i in range(100)) * 300
    for name in ("words", "classes", "polarity"):
        for section in bank(name).values():
            for word in section.take("train"):
                # With and without a space before it, for both are met.
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


def corpus(documents: int):
    """What the generator writes, then the words that are to have tokens of their own."""
    texts = list(written(documents))
    yield from texts
    here = Counter(w for text in texts for w in re.findall(r"(?<![\w@.-])[a-z]{3,}(?![\w@.-])", text))
    known = set(common_words(None))
    words = list(dict.fromkeys([*common_words(COMMON), *(w for w, n in here.most_common() if n > 3 and w in known)]))
    print(f"{len(words)} words with tokens of their own")
    for i, word in enumerate(words):
        # Nearly all are met behind a space; behind a quotation mark mostly the commonest.
        shown = f'"{word} {word} {word}' if i < COMMON else f". {word}"
        yield " ".join([shown] * OFTEN)
    often = sorted(words[:8000], key=lambda w: -here[w])[:CAPITALS]
    for word in often:
        yield " ".join([word.capitalize()] * OFTEN)


def main(size: int, documents: int = 20_000):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(CUT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        min_frequency=2,
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus(documents), trainer)
    paths.TOKENIZER.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(paths.TOKENIZER / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": 4096,
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
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 31744)
