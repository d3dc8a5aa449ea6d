"""Evaluation of rewrites on recorded dialogs, without a model: how much of what the work needs later stays in sight."""
