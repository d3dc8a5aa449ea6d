"""What a rewrite keeps in sight of what the work needs later, measured on recorded dialogs without a model."""
