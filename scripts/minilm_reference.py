#!/usr/bin/env python3
"""Compares embeddings of examples/minilm with those of the original implementation in PyTorch (transformers), or times the original.

    pip install torch transformers tokenizers numpy
    cargo run --release -p minilm -- --model DIR --file sentences.txt --out ours.npy
    scripts/minilm_reference.py --model DIR --file sentences.txt --compare ours.npy
    scripts/minilm_reference.py --model DIR --file sentences.txt --time 32
"""

import argparse
import json
import pathlib
import sys
import time

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import BertModel


def load(folder):
    model = BertModel.from_pretrained(folder, add_pooling_layer=False).eval()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    limit = json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"]
    tokenizer.enable_truncation(limit)
    tokenizer.no_padding()
    return model, tokenizer


@torch.inference_mode()
def encode(model, sentences):
    """Mean pooling over the tokens that are not padding, then normalization to length 1, as in sentence-transformers."""
    longest = max(map(len, sentences))
    ids = torch.tensor([ids + [0] * (longest - len(ids)) for ids in sentences])
    mask = torch.tensor([[1] * len(ids) + [0] * (longest - len(ids)) for ids in sentences])
    out = model(input_ids=ids, attention_mask=mask).last_hidden_state
    mask = mask.unsqueeze(-1).float()
    mean = (out * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
    return torch.nn.functional.normalize(mean, p=2, dim=1).numpy()


def embed(model, sentences, batch):
    by_length = sorted(range(len(sentences)), key=lambda at: -len(sentences[at]))
    out = np.empty((len(sentences), model.config.hidden_size), np.float32)
    for start in range(0, len(sentences), batch):
        chunk = by_length[start : start + batch]
        out[chunk] = encode(model, [sentences[at] for at in chunk])
    return out


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--model", type=pathlib.Path, required=True)
    args.add_argument("--file", type=pathlib.Path, required=True, help="one sentence per line")
    args.add_argument("--compare", type=pathlib.Path, help=".npy to compare with")
    args.add_argument("--out", type=pathlib.Path, help="where the reference goes, as .npy")
    args.add_argument("--time", type=int, metavar="BATCH", help="prints sentences per second of CPU time, the best of several runs")
    args.add_argument("--threads", type=int, default=torch.get_num_threads())
    args = args.parse_args()

    torch.set_num_threads(args.threads)
    model, tokenizer = load(args.model)
    # Like Rust's `lines`: an empty line is an empty sentence, and the last line may lack a line feed.
    text = args.file.read_text(encoding="utf-8")
    lines = text.split("\n")[: -1 if text.endswith("\n") else None]
    sentences = [encoding.ids for encoding in tokenizer.encode_batch(lines)]
    if args.time:
        best = float("inf")
        for _ in range(7):
            start = time.process_time()
            embed(model, sentences, args.time)
            best = min(best, time.process_time() - start)
        print(json.dumps({"what": "PyTorch", "batch": args.time, "per_second": len(sentences) / best}))
        return
    reference = embed(model, sentences, 1)
    if args.out:
        np.save(args.out, reference)
    if args.compare:
        ours = np.load(args.compare)
        if ours.shape != reference.shape or ours.dtype != np.float32:
            sys.exit(f"expected {reference.shape} of float32, found {ours.shape} of {ours.dtype}")
        difference = np.abs(ours - reference).max(axis=1)
        worst = int(difference.argmax())
        print(f"{len(lines)} sentences of {min(map(len, sentences))} to {max(map(len, sentences))} tokens")
        print(f"largest difference: {difference[worst]:.2e} (line {worst + 1})")
        if not difference[worst] <= 1e-5:
            sys.exit("that is more than 1e-5")


if __name__ == "__main__":
    main()
