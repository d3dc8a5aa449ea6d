"""Sign-in at an OpenID provider, without a web framework."""
