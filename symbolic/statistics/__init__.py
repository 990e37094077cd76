"""What moments and counts are made of."""
