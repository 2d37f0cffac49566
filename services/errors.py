"""The one tree of errors: transient ones are worth a retry, permanent ones name the fix."""

from __future__ import annotations


class VouchError(Exception):
    """Root of every error raised on purpose. The message says what, which, and the fix."""


class TransientError(VouchError):
    """May succeed when tried again unchanged (a lost connection, a timeout, a deadlock)."""


class PermanentError(VouchError):
    """Will fail again until somebody changes something; the message says what."""


class StoreUnavailable(TransientError):
    """The index database cannot be reached or answered too late."""


class SourceUnavailable(TransientError):
    """A source did not answer; the run may try it again."""


class SettingsError(PermanentError):
    """A setting, settings file or sources file is wrong; names the key."""


class RulesError(PermanentError):
    """The trust rules file is wrong; names the line and the key."""


class SourceError(PermanentError):
    """A source cannot be read as configured; names the source and the fix."""


class SourceUnknown(PermanentError):
    """No source of that name is configured."""


class ModelError(PermanentError):
    """The embedding model is missing or does not fit the index version."""


class SchemaError(PermanentError):
    """The database lacks Vouch's schema or has one this release does not know."""


class RefreshInProgress(PermanentError):
    """Another refresh holds the lease; names its run id and since when."""


class RunFenced(PermanentError):
    """This run lost its lease to a newer one; it must stop writing."""


class QuarantineLimitExceeded(PermanentError):
    """Too many records failed; nothing of the run was published."""


class KeyCollision(PermanentError):
    """Two ids have the same 63-bit key; neither may overwrite the other."""


class AssetNotFound(PermanentError):
    """No such asset, or none that the caller may see (the two are not told apart)."""


class InvalidRequest(PermanentError):
    """A request field has an impossible value; names the field."""
