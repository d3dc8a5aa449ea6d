"""Optional features, each an extension that can be switched off. See ``dialogs.extension``."""
