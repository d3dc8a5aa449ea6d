"""What a dialog's row keeps of its model's tokens, also where it was written by an older version."""

import pytest

from dialogs.context.sizes import calibration_of
from dialogs.models import Dialog
from remediation.tokens.calibration import Calibration, Counted, calibrate
from tests.dialogs.factories import make_dialog

pytestmark = pytest.mark.django_db


def reread(**columns: object) -> Dialog:
    dialog = make_dialog()
    Dialog.objects.filter(pk=dialog.pk).update(**columns)
    return Dialog.objects.get(pk=dialog.pk)


def test_nothing_learnt_is_none() -> None:
    assert calibration_of(reread()) is None


def test_one_factor_of_an_older_version_counts_until_the_next_report() -> None:
    known = calibration_of(reread(calibration=1.3))
    assert known and known.expected(Counted(1_000, 500)) == pytest.approx(1_950)


def test_what_reports_taught_goes_before_the_older_factor() -> None:
    learnt = calibrate(None, Counted(41, 970), 43)
    known = calibration_of(reread(calibration=1.3, calibration_fit=learnt.numbers))
    assert known and known.numbers == learnt.numbers
    assert known == Calibration.of_numbers(learnt.numbers)
