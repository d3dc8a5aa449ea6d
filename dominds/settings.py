"""Settings of Dominds, from the environment.

Two questions decide most defaults. Is there a database server? If not, this is the embedded default: an SQLite file, a
Redis that ``up`` starts, and a signing key made at the first start. Are all allowed hosts on this machine? If not,
people come over a network, and the pages demand HTTPS.
"""

import logging
from typing import Any

from csp.constants import NONCE, NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from dominds import budgets, env, logs, waits
from dominds.local.places import DATA_DIR, HOME_DIR, REDIS_URL_FILE, RESOURCES
from dominds.local.secret_key import kept_key
from dominds.redaction import remember_environment

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

DEBUG = env.flag("DEBUG", default=False)
MINDS_DIR = env.folder("DOMINDS_MINDS_DIR", ".minds", base=HOME_DIR)
# The folder that agents with file tools may read.
WORKSPACE_DIR = env.folder("DOMINDS_WORKSPACE_DIR", "workspace", base=HOME_DIR)

# -- Database --------------------------------------------------------------------------------------
SQLITE_OPTIONS = {
    # A deferred transaction that reads and then writes fails at once under contention. An immediate one waits its turn.
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,  # seconds
    # A turn changes a few bytes on many pages, and the log stores whole pages, so a new file gets small ones. The log
    # has 4 MB, as by default.
    "init_command": "PRAGMA page_size=1024; PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=4096; PRAGMA "
    "synchronous=FULL;",
}
# If a firewall forgets a connection it drops its packets, and without these options both ends would wait for hours. The
# server has them too, since a row would otherwise stay locked by a client that is gone.
POSTGRESQL_OPTIONS = {
    "keepalives": 1,
    "keepalives_idle": waits.KEEPALIVE_IDLE,
    "keepalives_interval": waits.KEEPALIVE_EVERY,
    "keepalives_count": waits.KEEPALIVE_TRIES,
    "tcp_user_timeout": waits.UNANSWERED_MILLISECONDS,
    "pool": {"min_size": 1, "max_size": env.number("DOMINDS_DB_POOL", default=16, minimum=1), "timeout": 5},
    "connect_timeout": 5,
    # Allows prepared statements: PostgreSQL spent half of its time on planning the same ones.
    "server_side_binding": True,
    "prepare_threshold": 3,
    "application_name": "dominds",
    "options": "-c lock_timeout=2s -c statement_timeout=30s -c idle_in_transaction_session_timeout=10s"
    f" -c tcp_keepalives_idle={waits.KEEPALIVE_IDLE} -c tcp_keepalives_interval={waits.KEEPALIVE_EVERY}"
    f" -c tcp_keepalives_count={waits.KEEPALIVE_TRIES} -c tcp_user_timeout={waits.UNANSWERED_MILLISECONDS}",
}
_database = env.database("DATABASE_URL", default=DATA_DIR / "dominds.sqlite3")
EMBEDDED = _database["ENGINE"] == env.FILE_ENGINE
DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        **_database,
        "ATOMIC_REQUESTS": False,
        "CONN_MAX_AGE": 0,  # threads of an ASGI server come and go, but the pool keeps the connections
        "OPTIONS": {**_database.get("OPTIONS", {}), **(SQLITE_OPTIONS if EMBEDDED else POSTGRESQL_OPTIONS)},
    }
}
# Whether waiting for a server outside while a transaction is open raises, as in tests. Otherwise it is logged.
STRICT_WAITS = env.flag("DOMINDS_STRICT_WAITS", default=False)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
env.make_folder("DOMINDS_DATA_DIR", DATA_DIR)
env.make_named_folder("DOMINDS_MINDS_DIR", MINDS_DIR)
env.make_named_folder("DOMINDS_WORKSPACE_DIR", WORKSPACE_DIR)

# -- Redis -----------------------------------------------------------------------------------------
REDIS_URL = "redis://127.0.0.1:6379/0"
if env.text("REDIS_URL"):
    REDIS_URL = env.redis_url("REDIS_URL")
elif REDIS_URL_FILE.is_file():
    REDIS_URL = REDIS_URL_FILE.read_text().strip()

# -- Hosts and transport ---------------------------------------------------------------------------
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", list(LOOPBACK))
LOOPBACK_ONLY = set(ALLOWED_HOSTS) <= set(LOOPBACK)
# If all hosts are on this machine, plain HTTP is used, since nothing leaves the machine. DOMINDS_HTTPS overrides this.
HTTPS = env.flag("DOMINDS_HTTPS", default=not (LOOPBACK_ONLY or DEBUG))
SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^livez$", r"^readyz$"]  # probes come from inside, over plain HTTP
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0  # one year
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
SECURE_HSTS_PRELOAD = HTTPS
if env.flag("DOMINDS_BEHIND_PROXY", default=False):  # without a proxy anyone could send this header
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS", [])
CSRF_COOKIE_SECURE = SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SAMESITE = SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_AGE = 12 * 60 * 60  # seconds
# A browser sends a host's cookies to all of its ports, so that two instances on one machine would log each other out.
if suffix := env.text("DOMINDS_COOKIE_SUFFIX"):
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = f"sessionid_{suffix}", f"csrftoken_{suffix}"

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF, NONCE],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "manifest-src": [SELF],
        "connect-src": [SELF],  # and own sockets: see dominds.web.middleware.own_sockets
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "object-src": [NONE],
    }
}

# -- The signing key -------------------------------------------------------------------------------
SECRET_KEY = env.text("SECRET_KEY")
if not SECRET_KEY:
    if not EMBEDDED:
        raise ImproperlyConfigured(
            "SECRET_KEY is not set, but DATABASE_URL names a server. Every web host and worker must share one key. "
            "Make one with `python -c 'import secrets; print(secrets.token_urlsafe(48))'`, set SECRET_KEY, start again."
        )
    SECRET_KEY = kept_key(DATA_DIR / "secret_key")
SECRET_KEY_FALLBACKS = env.words("SECRET_KEY_FALLBACKS", [])

# -- Applications ----------------------------------------------------------------------------------
# Optional features, each an extension (see dialogs.extension): ours first, then those of installed packages.
OWN_EXTRAS = [
    f"dialogs.extras.{name}"
    for name in ("v1", "notices", "sso", "imports", "operations", "backups", "time_travel", "sharing", "teams")
]
EXTRAS = env.apps("DOMINDS_EXTRAS", OWN_EXTRAS, group="dominds.extensions")
INSTALLED_APPS = [
    "dominds.apps.AdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "csp",
    "django_htmx",
    "django_prometheus",
    "django_structlog",
    "ninja",
    "health",
    "remediation",
    "dialogs",
    "dominds",
    *EXTRAS,
]
MIDDLEWARE = [
    "dominds.web.middleware.readable_only",
    "dominds.web.middleware.asked_by_address",
    "dominds.web.busy_database.retry_reads",
    "django.middleware.security.SecurityMiddleware",
    "dominds.web.static.StaticFiles",
    "dominds.web.compression.CompressedAnswers",
    "django_prometheus.middleware.PrometheusBeforeMiddleware",
    "csp.middleware.CSPMiddleware",
    "dominds.web.middleware.own_sockets",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django_structlog.middlewares.RequestMiddleware",
    "dominds.web.answer_headers.with_headers",
    "dialogs.store.charging.forget_key_after_request",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "dialogs.accounts.language.in_chosen_language",
    "dialogs.accounts.language.in_own_zone",
    "dialogs.views.answers.SaysWhatIsWrong",
    "django_prometheus.middleware.PrometheusAfterMiddleware",
]
ROOT_URLCONF = "dominds.urls"
ASGI_APPLICATION = "dominds.asgi.application"
# Named as text, since the lowest layer imports no app.
SOCKET_ROUTES = "dialogs.routing.websocket_urlpatterns"
WARMUP = "dialogs.pages.warmup.warm_up_pages"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [RESOURCES / "templates"],
        "OPTIONS": {
            "loaders": [
                (
                    "django.template.loaders.cached.Loader",
                    ["dominds.web.templates.OfFolders", "dominds.web.templates.OfApps"],
                )
            ],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "csp.context_processors.nonce",
            ],
            "builtins": ["django.templatetags.i18n", "dialogs.templatetags.words", "dialogs.templatetags.pieces"],
        },
    }
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"

# -- Pages -----------------------------------------------------------------------------------------
# People choose among these; programs, models and logs get English. A language is a folder of LOCALE_PATHS.
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [RESOURCES / "locale"]
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True
STATIC_URL = "/static/"
STATICFILES_DIRS = [RESOURCES / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "dominds.web.build.StampedStorage"},
}
WHITENOISE_USE_FINDERS = True  # serves the files of apps and packages where they are: none have to be collected
WHITENOISE_IMMUTABLE_FILE_TEST = r"/fonts/[^/]+\.[0-9a-f]{8}\.woff2$"  # names that contain the file's hash
WHITENOISE_MIMETYPES = {".webmanifest": "application/manifest+json"}
WHITENOISE_ALLOW_ALL_ORIGINS = False  # no other site needs our files
COMPRESS_ANSWERS = env.flag("DOMINDS_COMPRESS", default=True)
DATA_UPLOAD_MAX_MEMORY_SIZE = budgets.BODY_BYTES.most  # the largest body of /v1; views have smaller limits
PROMETHEUS_EXPORT_MIGRATIONS = False  # it would query the database at import
PROMETHEUS_METRICS_EXPORT_PORT = None
METRICS_TOKEN = env.text("DOMINDS_METRICS_TOKEN")

# Whether addresses that staff type into a page may lie on this machine or in its network. See dominds.outbound_http.
PRIVATE_WEBHOOKS = env.flag("DOMINDS_PRIVATE_WEBHOOKS", default=LOOPBACK_ONLY)

# The addresses at which the page that connects a model looks for servers.
LOCAL_SERVERS = env.servers(
    "DOMINDS_LOCAL_SERVERS",
    "lmstudio=http://127.0.0.1:1234,ollama=http://127.0.0.1:11434,llamacpp=http://127.0.0.1:8080",
)

# -- Mail: about questions that wait for a person. Without a server none is sent ---------------------------------------
PUBLIC_URL = env.web_address("DOMINDS_PUBLIC_URL")  # the address of the pages, for links in mails
EMAIL_TIMEOUT = 10  # seconds
globals().update(_mail := env.mail("DOMINDS_EMAIL_URL"))
MAIL_FROM = env.mail_sender("DOMINDS_EMAIL_FROM") if _mail else ""

# -- Images that answers name by their address, fetched when a person clicks on one ------------------------------------
REMOTE_IMAGES = env.flag("DOMINDS_REMOTE_IMAGES", default=True)
PRIVATE_IMAGES = env.flag("DOMINDS_PRIVATE_IMAGES", default=False)  # they may lie on this machine and in its network

# -- Push notifications of questions, to browsers that people subscribed -----------------------------------------------
WEB_PUSH = env.flag("DOMINDS_WEB_PUSH", default=True)
# Whether addresses of push services may lie on this machine or in its network. They come from any person's browser, not
# only from staff.
PRIVATE_PUSH = env.flag("DOMINDS_PRIVATE_PUSH", default=False)

# -- Sign-in at OpenID providers, beside passwords. Without an issuer there is none ------------------------------------
OIDC_PROVIDERS = env.openid_providers("DOMINDS_OIDC")

# -- Workers ----------------------------------------------------------------------------------------
SWEEPS = env.flag("DOMINDS_SWEEPS", default=True)
WORKER_BEFORE = env.text("DOMINDS_WORKER_BEFORE")

# -- Limits of the public contract; 0 switches one off ---------------------------------------------
MESSAGES_PER_MINUTE = env.number("DOMINDS_MESSAGES_PER_MINUTE", default=120)  # per person
# How long dialogs are kept that a client asked not to store, and prompts beside a conversation; 0: forever.
BRIEF_HOURS = env.number("DOMINDS_BRIEF_HOURS", default=24)
RUNNING_DIALOGS = env.number("DOMINDS_RUNNING_DIALOGS", default=50)  # per person

# dominds.budgets reads the bounds on data from outside, and ignores bad values. They stop the start here.
for _bound in budgets.ALL:
    env.number(_bound.setting, default=_bound.most, minimum=1)

# -- Logs ------------------------------------------------------------------------------------------
remember_environment()
logs.configure_structlog()
LOGGING = logs.logging_config(
    style=env.one_of("DOMINDS_LOG", ("console", "json"), "console" if EMBEDDED else "json"),
    level=env.one_of("DOMINDS_LOG_LEVEL", ("DEBUG", "INFO", "WARNING", "ERROR"), "INFO"),
)
DJANGO_STRUCTLOG_CELERY_ENABLED = False
DJANGO_STRUCTLOG_IP_LOGGING_ENABLED = False  # see dominds.web.middleware.note_address
DJANGO_STRUCTLOG_REQUEST_CANCELLED_LOG_LEVEL = logging.INFO  # a browser that leaves a stream is no error
