from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from dialogs.views.answers import PersonRequest
from waiting_times.waiting import newest_closed


@login_required
@require_GET
def show(request: PersonRequest) -> HttpResponse:
    context = {"closed": newest_closed(request.user), "section": "waiting-times"}
    return render(request, "waiting_times/page.html", context)
