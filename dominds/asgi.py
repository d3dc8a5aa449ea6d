"""The ASGI application: pages by Django, sockets by Channels. ``daphne dominds.asgi:application`` serves it."""

import os
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dominds.settings")

from dominds.web.asgi_handler import get_application

django_application = get_application()  # sets up Django, so that the imports below may load models

from channels.routing import ProtocolTypeRouter, URLRouter
from channels.sessions import CookieMiddleware
from django.conf import settings
from django.utils.module_loading import import_string

from dominds import gc_tuning, telemetry
from dominds.local import gate
from dominds.web import daphne_patch
from dominds.web.admission import admit
from dominds.web.socket_origin import same_origin_only
from dominds.web.startup import at_first_call, warm_up
from dominds.web.watchdog import watch

# The event loop needs the interpreter several times for each frame. By default it may wait 5 ms each time, while a
# thread renders a page.
sys.setswitchinterval(0.0005)

application = watch(
    ProtocolTypeRouter(
        {
            "http": at_first_call(django_application, lambda: warm_up(import_string(settings.WARMUP))),
            # The origin check is outermost: another site's page must not open a socket with this person's cookie.
            "websocket": same_origin_only(admit(CookieMiddleware(URLRouter(import_string(settings.SOCKET_ROUTES))))),
        }
    )
)

daphne_patch.patch_sending()
daphne_patch.patch_receiving()
gc_tuning.settle()
telemetry.start("dominds-web")
gate.pass_through()
