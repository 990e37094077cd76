"""What models read: pairs and texts, tokens, batches."""
