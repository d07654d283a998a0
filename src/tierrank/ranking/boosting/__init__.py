"""What boosting is made of: derivatives of the objectives, libraries that grow trees, forests."""
