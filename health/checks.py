"""System checks, registered at start."""
