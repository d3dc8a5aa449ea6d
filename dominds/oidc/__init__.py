"""Sign-in at an OpenID provider. Knows no web framework."""
