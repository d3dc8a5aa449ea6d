"""Sign-in at an OpenID provider, independent of any web framework."""
