"""The likelihood inside the tools that people already use, a module for each."""
