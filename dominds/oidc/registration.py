"""The OpenID providers at which this server is registered. Settings load this module, so it imports nothing large."""

from dataclasses import dataclass, field

BAD_GATEWAY = 502  # HTTP


class SignInFailed(Exception):
    """Raised when nobody was signed in. The text is for the person; ``reason`` is for the log and holds no secret."""

    def __init__(self, text: str, reason: str, status: int = BAD_GATEWAY) -> None:
        super().__init__(text)
        self.reason, self.status = reason, status


@dataclass(frozen=True, slots=True)
class Registration:
    """A registration, on which the operators of the provider and of this server have agreed.

    ``name`` stands on the button. ``number`` is its number in the environment, and from 2 on a part of the redirect
    address.
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
        """Check whether this issuer is the provider; a slash at the end makes no difference."""
        return self.issuer.rstrip("/") == issuer.rstrip("/")

    def away(self, reason: str) -> SignInFailed:
        text = f"{self.name} cannot be reached now. Try again in a minute, or log in with a password."
        return SignInFailed(text, reason)

    def misbehaviour(self, reason: str) -> SignInFailed:
        return SignInFailed(f"{self.name} gave an answer that cannot be trusted. Tell your operator.", reason)
