"""Run by ``pytest`` here, where the package is installed: the laws of every extension, and what this one counts."""

from datetime import timedelta

import pytest
from django.utils import timezone
from waiting_times.waiting import minutes_waited

from dialogs.extras.conformance import ExtensionConformance
from dialogs.models import Question


class TestWaitingTimes(ExtensionConformance):
    app = "waiting_times"


def test_minutes_are_those_between_question_and_answer() -> None:
    asked = timezone.now()
    assert minutes_waited(Question(created_at=asked, resolved_at=asked + timedelta(minutes=90))) == 90.0


def test_an_open_question_has_not_waited_yet() -> None:
    with pytest.raises(ValueError, match="still open"):
        minutes_waited(Question(created_at=timezone.now()))
