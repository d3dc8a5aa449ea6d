"""Registrations of this server at OpenID providers. Settings load this module, so it imports nothing large."""

from dataclasses import dataclass, field

BAD_GATEWAY = 502  # HTTP


class SignInFailed(Exception):
    """Raised if a sign-in failed. The message is for the person; ``reason`` is for the log and holds no secret."""

    def __init__(self, text: str, reason: str, status: int = BAD_GATEWAY) -> None:
        super().__init__(text)
        self.reason, self.status = reason, status


@dataclass(frozen=True, slots=True)
class Registration:
    """The registration of this server at one OpenID provider.

    ``name`` stands on the button. ``number`` is that in the environment variables. From 2 on it is also a part of the
    redirect address.
    """

    name: str
    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    scopes: str = "openid profile email"
    groups_claim: str = "groups"
    makes_accounts: bool = True
    number: int = 1

    def names(self, issuer: str) -> bool:
        """Check whether this is the provider's issuer. A slash at the end makes no difference."""
        return self.issuer.rstrip("/") == issuer.rstrip("/")

    def away(self, reason: str) -> SignInFailed:
        text = f"{self.name} cannot be reached now. Try again in a minute, or log in with a password."
        return SignInFailed(text, reason)

    def misbehaviour(self, reason: str) -> SignInFailed:
        return SignInFailed(f"{self.name} gave an answer that cannot be trusted. Tell your operator.", reason)
