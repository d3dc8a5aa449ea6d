from dialogs.extension import Extension

EXTENSION = Extension(name="backups", summary="The commands `backup` and `restore`.")
