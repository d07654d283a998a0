"""What the readers of text files share: rows of indices, and the places errors name."""
