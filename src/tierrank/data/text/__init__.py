"""What the readers of text files share: numbers in bytes, blanks, and the places errors name."""
