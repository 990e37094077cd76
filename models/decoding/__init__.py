"""From a trained model to text: search, cached steps, filters of probabilities, and the metrics of what comes out."""
