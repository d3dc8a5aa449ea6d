"""Import of conversations that were held elsewhere, as dialogs: reading a file, and storing each conversation once."""
