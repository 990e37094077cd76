"""What is built from it: seq2seq, Transformers, optimisers, training, decoding, metrics, data."""
