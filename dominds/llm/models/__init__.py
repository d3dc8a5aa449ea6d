"""What is known of a model, and the parameters that it takes."""
