"""Push recall: what is out of sight and bears on the newest message, brought back into the request. Pure rules."""
