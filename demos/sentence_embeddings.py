"""Turns sentences into vectors and finds the one nearest to a question.

Words are numbers by a hash; their vectors are drawn at random, so what is alike are sentences that share words. A trained table in
its place is the only difference to a real model.

python demos/sentence_embeddings.py
"""

import zlib

import numpy as np
import pyc

WORDS, WIDTH, LENGTH = 4096, 128, 16
SENTENCES = (
    "the compiler plans memory before the run",
    "a kernel reads its weights packed",
    "the cat sleeps on the warm stove",
    "results have the same bits on every machine",
)
QUESTION = "where does the cat sleep"


def tokens(sentences):
    """Numbers of the words' stems, 0 where a sentence is over: i64[n,LENGTH]."""
    out = np.zeros((len(sentences), LENGTH), np.int64)
    for row, sentence in zip(out, sentences):
        for i, word in enumerate(sentence.split()[:LENGTH]):
            row[i] = 1 + zlib.crc32(word.rstrip("s").encode()) % (WORDS - 1)
    return out


def encoder(count):
    """A mean over the words that are there, of length 1."""
    b = pyc.ModelBuilder("sentences")
    ids = b.input("ids", "i64", (count, LENGTH))
    table = b.random("table", "f32", (WORDS, WIDTH), seed=3, lo=-1.0, hi=1.0)
    there = b.cast(b.greater(ids, b.scalar("i64", 0)), to="f32")
    words = b.gather(table, ids, axis=0) * b.reshape(there, (count, LENGTH, 1))
    total = b.reduce_sum(words, axes=[1], keepdims=False)
    b.output(total / b.reduce_l2(total, axes=[1], keepdims=True), "vectors")
    return b.compile()


def main():
    vectors = encoder(len(SENTENCES))(tokens(SENTENCES))
    question = encoder(1)(tokens([QUESTION]))[0]
    alike = vectors @ question
    print(QUESTION)
    for i in np.argsort(-alike):
        print(f"  {alike[i]:5.2f}  {SENTENCES[i]}")
    assert SENTENCES[int(alike.argmax())].startswith("the cat")


main()
